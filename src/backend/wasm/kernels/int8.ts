// Affine weights with int8 activations: x ≈ scale · q, one scale a weight group, q in −127 … 127.
// The integer dot product is exact, so its order is free; group results add up in order. Products of two
// columns are at most 2 · 127 · 15, so that eight of these sums, a group of 128 columns, fit 16 bits. No
// more do.
//
// `mask` is that of the matrix's record; panels.ts says why it is an argument.
import { madd, put } from "./math";
import { biasesOf, blockBytes, Bytes, Nibbles, scalesBytes, scalesOf } from "./weights";

/**
 * Quantises one activation row for blocks of `period` vectors a step: writes per group the scale and
 * scale · Σq, and the codes in the byte order of the weight block (see affine.ts).
 * 4-bit: low nibbles then high nibbles of a step's bytes; 8-bit: as the bytes lie.
 */
export function prepareInt8(
  x: usize,
  cols: i32,
  group: i32,
  period: i32,
  scales: usize,
  sums: usize,
  out: usize,
): void {
  const groupBytes = (group as usize) << 2;
  const end = x + ((cols as usize) << 2);
  for (; x < end; x += groupBytes) {
    let peak = f32x4.splat(0);
    for (let v: usize = 0; v < groupBytes; v += 16) {
      peak = f32x4.max(peak, f32x4.abs(v128.load(x + v)));
    }
    const top = max(
      max(f32x4.extract_lane(peak, 0), f32x4.extract_lane(peak, 1)),
      max(f32x4.extract_lane(peak, 2), f32x4.extract_lane(peak, 3)),
    );
    const scale: f32 = top / 127;
    const inverse = f32x4.splat(top > 0 ? 127 / top : 0);
    let sum = i32x4.splat(0);
    if (period == 8) {
      for (let v: usize = 0; v < groupBytes; v += 128) {
        sum = quantise(x + v, 32, inverse, out, sum);
        sum = quantise(x + v + 16, 32, inverse, out + 16, sum);
        out += 32;
      }
    } else {
      for (let v: usize = 0; v < groupBytes; v += 64) {
        sum = quantise(x + v, 16, inverse, out, sum);
        out += 16;
      }
    }
    store<f32>(scales, scale);
    store<f32>(sums, scale * (laneSum(sum) as f32));
    scales += 4;
    sums += 4;
  }
}

/** Four vectors, `stride` bytes apart: byte j of word l is lane l of vector j. Adds the codes to `sum`. */
@inline
function quantise(x: usize, stride: usize, inverse: v128, out: usize, sum: v128): v128 {
  const a = codesOf(x, inverse);
  const b = codesOf(x + stride, inverse);
  const c = codesOf(x + 2 * stride, inverse);
  const d = codesOf(x + 3 * stride, inverse);
  const byte = i32x4.splat(0xff);
  const low = v128.or(v128.and(a, byte), i32x4.shl(v128.and(b, byte), 8));
  const high = v128.or(i32x4.shl(v128.and(c, byte), 16), i32x4.shl(d, 24));
  v128.store(out, v128.or(low, high));
  return i32x4.add(sum, i32x4.add(i32x4.add(a, b), i32x4.add(c, d)));
}

@inline
function codesOf(x: usize, inverse: v128): v128 {
  return i32x4.trunc_sat_f32x4_s(f32x4.nearest(f32x4.mul(v128.load(x), inverse)));
}

@inline
function laneSum(a: v128): i32 {
  const first = i32x4.extract_lane(a, 0) + i32x4.extract_lane(a, 1);
  return first + i32x4.extract_lane(a, 2) + i32x4.extract_lane(a, 3);
}

/** Products of signed bytes and bytes of 0 … 15, added in twos. */
@inline
export function products(x: v128, w: v128): v128 {
  if (ASC_FEATURE_RELAXED_SIMD) return i16x8.relaxed_dot_i8x16_i7x16_s(x, w);
  return i16x8.add(i16x8.extmul_low_i8x16_s(x, w), i16x8.extmul_high_i8x16_s(x, w));
}

@inline
function upperNibbles(codes: v128, nibble: v128): v128 {
  return v128.and(i16x8.shr_u(codes, 4), nibble);
}

/** Of 32 columns of one row of weights, 4-bit codes: eight sums of four products. */
@inline
function nibbleProducts(codes: v128, low: v128, high: v128, nibble: v128): v128 {
  const upper = products(high, upperNibbles(codes, nibble));
  return i16x8.add(products(low, v128.and(codes, nibble)), upper);
}

/** Lane i is the sum of all lanes of the i-th argument. `ones` are eight. */
@inline
function laneSums(a: v128, b: v128, c: v128, d: v128, ones: v128): v128 {
  a = i32x4.dot_i16x8_s(a, ones);
  b = i32x4.dot_i16x8_s(b, ones);
  c = i32x4.dot_i16x8_s(c, ones);
  d = i32x4.dot_i16x8_s(d, ones);
  const ab = i32x4.add(v128.shuffle<i32>(a, b, 0, 4, 1, 5), v128.shuffle<i32>(a, b, 2, 6, 3, 7));
  const cd = i32x4.add(v128.shuffle<i32>(c, d, 0, 4, 1, 5), v128.shuffle<i32>(c, d, 2, 6, 3, 7));
  return i32x4.add(v128.shuffle<i32>(ab, cd, 0, 1, 4, 5), v128.shuffle<i32>(ab, cd, 2, 3, 6, 7));
}

/** y + scale · x scale · dot, then + bias · x sum, of a group. */
@inline
function addGroup<S>(y: v128, dot: v128, scales: usize, xScale: usize, xSum: usize): v128 {
  const scaled = f32x4.mul(f32x4.convert_i32x4_s(dot), v128.load32_splat(xScale));
  y = madd(scaled, scalesOf<S>(scales), y);
  return madd(biasesOf<S>(scales), v128.load32_splat(xSum), y);
}

/** Four outputs of one activation row, 4-bit codes. */
export function int8Nibbles<S>(
  codes: usize,
  scales: usize,
  groups: i32,
  group: i32,
  x: usize,
  xScales: usize,
  xSums: usize,
  mask: i32,
): v128 {
  const nibble = i8x16.splat(mask as i8);
  const ones = i16x8.splat((mask & 1) as i16);
  let y = f32x4.splat(0);
  for (let g: i32 = 0; g < groups; g++) {
    const end = codes + blockBytes<Nibbles>(group);
    let low = v128.load(x);
    let high = v128.load(x, 16);
    let a0 = nibbleProducts(v128.load(codes), low, high, nibble);
    let a1 = nibbleProducts(v128.load(codes, 16), low, high, nibble);
    let a2 = nibbleProducts(v128.load(codes, 32), low, high, nibble);
    let a3 = nibbleProducts(v128.load(codes, 48), low, high, nibble);
    x += 32;
    codes += 64;
    for (; codes < end; codes += 64) {
      low = v128.load(x);
      high = v128.load(x, 16);
      a0 = i16x8.add(a0, nibbleProducts(v128.load(codes), low, high, nibble));
      a1 = i16x8.add(a1, nibbleProducts(v128.load(codes, 16), low, high, nibble));
      a2 = i16x8.add(a2, nibbleProducts(v128.load(codes, 32), low, high, nibble));
      a3 = i16x8.add(a3, nibbleProducts(v128.load(codes, 48), low, high, nibble));
      x += 32;
    }
    y = addGroup<S>(y, laneSums(a0, a1, a2, a3, ones), scales, xScales, xSums);
    scales += scalesBytes<S>();
    xScales += 4;
    xSums += 4;
  }
  return y;
}

/**
 * Unpacks a block of 4-bit codes for many rows: of each step of 32 columns, four vectors with the lower nibbles
 * of the four rows of weights, then four with the upper.
 */
export function unpackNibbles(codes: usize, cols: i32, mask: i32, out: usize): void {
  const nibble = i8x16.splat(mask as i8);
  const end = codes + blockBytes<Nibbles>(cols);
  for (; codes < end; codes += 64) {
    for (let n: usize = 0; n < 64; n += 16) {
      const four = v128.load(codes + n);
      v128.store(out + n, v128.and(four, nibble));
      v128.store(out + n, upperNibbles(four, nibble), 64);
    }
    out += 128;
  }
}

/** Two activation rows with an unpacked block. Writes, or adds to, both rows' outputs. */
export function int8Pair<S>(
  weights: usize,
  scales: usize,
  groups: i32,
  group: i32,
  x: usize,
  xScales: usize,
  xSums: usize,
  mask: i32,
  out: usize,
  outStride: usize,
  accumulate: bool,
): void {
  const ones = i16x8.splat((mask & 1) as i16);
  const groupsBytes = (groups as usize) << 2;
  const rowBytes = (groups * group) as usize;
  let y = f32x4.splat(0);
  let z = y;
  for (let g: i32 = 0; g < groups; g++) {
    const end = x + (group as usize);
    let a = v128.load(x);
    let b = v128.load(x + rowBytes);
    let w = v128.load(weights);
    let a0 = products(a, w);
    let b0 = products(b, w);
    w = v128.load(weights, 16);
    let a1 = products(a, w);
    let b1 = products(b, w);
    w = v128.load(weights, 32);
    let a2 = products(a, w);
    let b2 = products(b, w);
    w = v128.load(weights, 48);
    let a3 = products(a, w);
    let b3 = products(b, w);
    x += 16;
    weights += 64;
    for (; x < end; x += 16) {
      a = v128.load(x);
      b = v128.load(x + rowBytes);
      w = v128.load(weights);
      a0 = i16x8.add(a0, products(a, w));
      b0 = i16x8.add(b0, products(b, w));
      w = v128.load(weights, 16);
      a1 = i16x8.add(a1, products(a, w));
      b1 = i16x8.add(b1, products(b, w));
      w = v128.load(weights, 32);
      a2 = i16x8.add(a2, products(a, w));
      b2 = i16x8.add(b2, products(b, w));
      w = v128.load(weights, 48);
      a3 = i16x8.add(a3, products(a, w));
      b3 = i16x8.add(b3, products(b, w));
      weights += 64;
    }
    y = addGroup<S>(y, laneSums(a0, a1, a2, a3, ones), scales, xScales, xSums);
    const dots = laneSums(b0, b1, b2, b3, ones);
    z = addGroup<S>(z, dots, scales, xScales + groupsBytes, xSums + groupsBytes);
    scales += scalesBytes<S>();
    xScales += 4;
    xSums += 4;
  }
  put(out, y, accumulate);
  put(out + outStride, z, accumulate);
}

/** Four outputs of one activation row, 8-bit codes: lower and upper nibbles apart. */
export function int8Bytes<S>(
  codes: usize,
  scales: usize,
  groups: i32,
  group: i32,
  x: usize,
  xScales: usize,
  xSums: usize,
  mask: i32,
): v128 {
  const nibble = i8x16.splat((mask & 0xf) as i8);
  const ones = i16x8.splat((mask & 1) as i16);
  const zero = i32x4.splat(0);
  let y = f32x4.splat(0);
  for (let g: i32 = 0; g < groups; g++) {
    let a0 = zero;
    let a1 = zero;
    let a2 = zero;
    let a3 = zero;
    let b0 = zero;
    let b1 = zero;
    let b2 = zero;
    let b3 = zero;
    const end = codes + blockBytes<Bytes>(group);
    for (; codes < end; codes += 64) {
      const a = v128.load(x);
      const c0 = v128.load(codes);
      const c1 = v128.load(codes, 16);
      const c2 = v128.load(codes, 32);
      const c3 = v128.load(codes, 48);
      a0 = i16x8.add(a0, products(a, v128.and(c0, nibble)));
      a1 = i16x8.add(a1, products(a, v128.and(c1, nibble)));
      a2 = i16x8.add(a2, products(a, v128.and(c2, nibble)));
      a3 = i16x8.add(a3, products(a, v128.and(c3, nibble)));
      b0 = i16x8.add(b0, products(a, upperNibbles(c0, nibble)));
      b1 = i16x8.add(b1, products(a, upperNibbles(c1, nibble)));
      b2 = i16x8.add(b2, products(a, upperNibbles(c2, nibble)));
      b3 = i16x8.add(b3, products(a, upperNibbles(c3, nibble)));
      x += 16;
    }
    const upper = i32x4.shl(laneSums(b0, b1, b2, b3, ones), 4);
    const whole = i32x4.add(laneSums(a0, a1, a2, a3, ones), upper);
    y = addGroup<S>(y, whole, scales, xScales, xSums);
    scales += scalesBytes<S>();
    xScales += 4;
    xSums += 4;
  }
  return y;
}
