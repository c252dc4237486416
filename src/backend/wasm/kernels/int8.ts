// Affine weights with int8 activations: x ≈ scale · q, one scale a weight group, q in −127 … 127.
// The integer dot product is exact, so its order is free; group results add up in order. So it may be added
// up in 16 or in 32 bits, whichever is faster on a machine (dots.ts), and rows one by one or in fours.
//
// `mask` is that of the matrix's record; panels.ts says why it is an argument.
import { addProducts, addWords, apart, inWords, spanOf, spread } from "./dots";
import { madd, put } from "./math";
import { readAhead } from "./read-ahead";
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

@inline
function upperNibbles(codes: v128, nibble: v128): v128 {
  return v128.and(i16x8.shr_u(codes, 4), nibble);
}

/** Adds what 32 columns of one row of weights make, 4-bit codes. */
@inline
function addNibbles<D>(sums: v128, codes: v128, low: v128, high: v128, nibble: v128): v128 {
  sums = addProducts<D>(sums, low, v128.and(codes, nibble));
  return addProducts<D>(sums, high, upperNibbles(codes, nibble));
}

/** Lane i is the sum of all lanes of the i-th argument. */
@inline
function laneSums<D>(a: v128, b: v128, c: v128, d: v128, ones: v128): v128 {
  a = inWords<D>(a, ones);
  b = inWords<D>(b, ones);
  c = inWords<D>(c, ones);
  d = inWords<D>(d, ones);
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

/** Adds what a group of a block makes of one activation row to the block's four outputs. */
@inline
function addBlock<T, S, D>(
  y: v128,
  codes: usize,
  scales: usize,
  group: i32,
  x: usize,
  xScale: usize,
  xSum: usize,
  nibble: v128,
  ones: v128,
): v128 {
  const dot =
    sizeof<T>() == sizeof<Nibbles>()
      ? dotNibbles<D>(codes, group, x, nibble, ones)
      : dotBytes<D>(codes, group, x, nibble, ones);
  return addGroup<S>(y, dot, scales, xScale, xSum);
}

/** 4-bit codes. */
@inline
function dotNibbles<D>(codes: usize, group: i32, x: usize, nibble: v128, ones: v128): v128 {
  let a0 = i32x4.splat(0);
  let a1 = a0;
  let a2 = a0;
  let a3 = a0;
  const end = codes + blockBytes<Nibbles>(group);
  for (; codes < end; codes += 64) {
    const low = v128.load(x);
    const high = v128.load(x, 16);
    a0 = addNibbles<D>(a0, v128.load(codes), low, high, nibble);
    a1 = addNibbles<D>(a1, v128.load(codes, 16), low, high, nibble);
    a2 = addNibbles<D>(a2, v128.load(codes, 32), low, high, nibble);
    a3 = addNibbles<D>(a3, v128.load(codes, 48), low, high, nibble);
    x += 32;
  }
  return laneSums<D>(a0, a1, a2, a3, ones);
}

/** 8-bit codes: lower and upper nibbles apart. */
@inline
function dotBytes<D>(codes: usize, group: i32, x: usize, nibble: v128, ones: v128): v128 {
  let a0 = i32x4.splat(0);
  let a1 = a0;
  let a2 = a0;
  let a3 = a0;
  let b0 = a0;
  let b1 = a0;
  let b2 = a0;
  let b3 = a0;
  const end = codes + blockBytes<Bytes>(group);
  for (; codes < end; codes += 64) {
    const a = v128.load(x);
    const c0 = v128.load(codes);
    const c1 = v128.load(codes, 16);
    const c2 = v128.load(codes, 32);
    const c3 = v128.load(codes, 48);
    a0 = addProducts<D>(a0, a, v128.and(c0, nibble));
    a1 = addProducts<D>(a1, a, v128.and(c1, nibble));
    a2 = addProducts<D>(a2, a, v128.and(c2, nibble));
    a3 = addProducts<D>(a3, a, v128.and(c3, nibble));
    b0 = addProducts<D>(b0, a, upperNibbles(c0, nibble));
    b1 = addProducts<D>(b1, a, upperNibbles(c1, nibble));
    b2 = addProducts<D>(b2, a, upperNibbles(c2, nibble));
    b3 = addProducts<D>(b3, a, upperNibbles(c3, nibble));
    x += 16;
  }
  const upper = i32x4.shl(laneSums<D>(b0, b1, b2, b3, ones), 4);
  return i32x4.add(laneSums<D>(a0, a1, a2, a3, ones), upper);
}

/** Four outputs of one activation row. */
export function int8Block<T, S, D>(
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
  let y = f32x4.splat(0);
  for (let g: i32 = 0; g < groups; g++) {
    readAhead(codes, blockBytes<T>(group));
    y = addBlock<T, S, D>(y, codes, scales, group, x, xScales, xSums, nibble, ones);
    codes += blockBytes<T>(group);
    scales += scalesBytes<S>();
    x += group as usize;
    xScales += 4;
    xSums += 4;
  }
  return y;
}

/**
 * Sixteen outputs of one activation row: of four blocks that lie `apart` bytes from each other, their scales
 * `scalesApart`, their outputs `outApart`, a group of each in turn. A core's prefetcher goes ahead on each page
 * by itself, so that four far from each other are asked for four times as early as one.
 */
export function int8FourBlocks<T, S, D>(
  codes: usize,
  apart: usize,
  scales: usize,
  scalesApart: usize,
  groups: i32,
  group: i32,
  x: usize,
  xScales: usize,
  xSums: usize,
  mask: i32,
  out: usize,
  outApart: usize,
  accumulate: bool,
): void {
  const nibble = i8x16.splat((mask & 0xf) as i8);
  const ones = i16x8.splat((mask & 1) as i16);
  let y0 = f32x4.splat(0);
  let y1 = y0;
  let y2 = y0;
  let y3 = y0;
  for (let g: i32 = 0; g < groups; g++) {
    let block = codes;
    let own = scales;
    y0 = addBlock<T, S, D>(y0, block, own, group, x, xScales, xSums, nibble, ones);
    block += apart;
    own += scalesApart;
    y1 = addBlock<T, S, D>(y1, block, own, group, x, xScales, xSums, nibble, ones);
    block += apart;
    own += scalesApart;
    y2 = addBlock<T, S, D>(y2, block, own, group, x, xScales, xSums, nibble, ones);
    block += apart;
    own += scalesApart;
    y3 = addBlock<T, S, D>(y3, block, own, group, x, xScales, xSums, nibble, ones);
    codes += blockBytes<T>(group);
    scales += scalesBytes<S>();
    x += group as usize;
    xScales += 4;
    xSums += 4;
  }
  put(out, y0, accumulate);
  put(out + outApart, y1, accumulate);
  put(out + 2 * outApart, y2, accumulate);
  put(out + 3 * outApart, y3, accumulate);
}

/**
 * Unpacks two blocks of 4-bit codes, `apart` bytes from each other, for many rows, as int8Fours wants it: of each
 * step of 32 columns, four vectors of the lower nibbles and four of the upper. Word n of a vector has four codes
 * of row n of the weights. The second block comes behind the first.
 */
export function unpackTwoBlocks(
  codes: usize,
  apart: usize,
  groups: i32,
  group: i32,
  mask: i32,
  out: usize,
): void {
  const nibble = i8x16.splat(mask as i8);
  const second = ((groups * group) as usize) << 2;
  for (let g: i32 = 0; g < groups; g++) {
    unpack(codes, group, nibble, out);
    unpack(codes + apart, group, nibble, out + second);
    codes += blockBytes<Nibbles>(group);
    out += (group as usize) << 2;
  }
}

@inline
function unpack(codes: usize, cols: i32, nibble: v128, out: usize): void {
  const end = codes + blockBytes<Nibbles>(cols);
  for (; codes < end; codes += 64) {
    const a = v128.load(codes);
    const b = v128.load(codes, 16);
    const c = v128.load(codes, 32);
    const d = v128.load(codes, 48);
    const ab = v128.shuffle<i32>(a, b, 0, 4, 1, 5);
    const cd = v128.shuffle<i32>(c, d, 0, 4, 1, 5);
    const abEnd = v128.shuffle<i32>(a, b, 2, 6, 3, 7);
    const cdEnd = v128.shuffle<i32>(c, d, 2, 6, 3, 7);
    storeNibbles(out, v128.shuffle<i32>(ab, cd, 0, 1, 4, 5), nibble);
    storeNibbles(out + 16, v128.shuffle<i32>(ab, cd, 2, 3, 6, 7), nibble);
    storeNibbles(out + 32, v128.shuffle<i32>(abEnd, cdEnd, 0, 1, 4, 5), nibble);
    storeNibbles(out + 48, v128.shuffle<i32>(abEnd, cdEnd, 2, 3, 6, 7), nibble);
    out += 128;
  }
}

@inline
function storeNibbles(out: usize, codes: v128, nibble: v128): void {
  v128.store(out, apart(v128.and(codes, nibble)));
  v128.store(out, apart(upperNibbles(codes, nibble)), 64);
}

/**
 * Four activation rows with the two blocks that unpackTwoBlocks left, so that each value that is loaded counts
 * for several products. Lanes are rows of weights. Writes, or adds to, eight outputs of each row: the second
 * block's scales lie `scalesApart` bytes behind the first's, its outputs `outApart`.
 */
export function int8Fours<S, D>(
  weights: usize,
  scales: usize,
  scalesApart: usize,
  groups: i32,
  group: i32,
  x: usize,
  xScales: usize,
  xSums: usize,
  mask: i32,
  out: usize,
  outApart: usize,
  outStride: usize,
  accumulate: bool,
): void {
  const ones = i16x8.splat((mask & 1) as i16);
  const zero = i32x4.splat(0);
  const rowBytes = (groups * group) as usize;
  const groupsBytes = (groups as usize) << 2;
  const spanBytes = spanOf<D>(group) as usize;
  let y0 = f32x4.splat(0);
  let y1 = y0;
  let y2 = y0;
  let y3 = y0;
  let z0 = y0;
  let z1 = y0;
  let z2 = y0;
  let z3 = y0;
  for (let g: i32 = 0; g < groups; g++) {
    let a0 = zero;
    let a1 = zero;
    let a2 = zero;
    let a3 = zero;
    let b0 = zero;
    let b1 = zero;
    let b2 = zero;
    let b3 = zero;
    const groupEnd = x + (group as usize);
    while (x < groupEnd) {
      const end = x + spanBytes;
      let c0 = zero;
      let c1 = zero;
      let c2 = zero;
      let c3 = zero;
      let d0 = zero;
      let d1 = zero;
      let d2 = zero;
      let d3 = zero;
      for (; x < end; x += 4) {
        const c = v128.load(weights);
        const d = v128.load(weights + (rowBytes << 2));
        let v = spread(x);
        c0 = addProducts<D>(c0, v, c);
        d0 = addProducts<D>(d0, v, d);
        v = spread(x + rowBytes);
        c1 = addProducts<D>(c1, v, c);
        d1 = addProducts<D>(d1, v, d);
        v = spread(x + 2 * rowBytes);
        c2 = addProducts<D>(c2, v, c);
        d2 = addProducts<D>(d2, v, d);
        v = spread(x + 3 * rowBytes);
        c3 = addProducts<D>(c3, v, c);
        d3 = addProducts<D>(d3, v, d);
        weights += 16;
      }
      a0 = addWords<D>(a0, c0, ones);
      a1 = addWords<D>(a1, c1, ones);
      a2 = addWords<D>(a2, c2, ones);
      a3 = addWords<D>(a3, c3, ones);
      b0 = addWords<D>(b0, d0, ones);
      b1 = addWords<D>(b1, d1, ones);
      b2 = addWords<D>(b2, d2, ones);
      b3 = addWords<D>(b3, d3, ones);
    }
    const next = scales + scalesApart;
    y0 = addGroup<S>(y0, a0, scales, xScales, xSums);
    z0 = addGroup<S>(z0, b0, next, xScales, xSums);
    let row = groupsBytes;
    y1 = addGroup<S>(y1, a1, scales, xScales + row, xSums + row);
    z1 = addGroup<S>(z1, b1, next, xScales + row, xSums + row);
    row += groupsBytes;
    y2 = addGroup<S>(y2, a2, scales, xScales + row, xSums + row);
    z2 = addGroup<S>(z2, b2, next, xScales + row, xSums + row);
    row += groupsBytes;
    y3 = addGroup<S>(y3, a3, scales, xScales + row, xSums + row);
    z3 = addGroup<S>(z3, b3, next, xScales + row, xSums + row);
    scales += scalesBytes<S>();
    xScales += 4;
    xSums += 4;
  }
  putTwo(out, outApart, y0, z0, accumulate);
  putTwo(out + outStride, outApart, y1, z1, accumulate);
  putTwo(out + 2 * outStride, outApart, y2, z2, accumulate);
  putTwo(out + 3 * outStride, outApart, y3, z3, accumulate);
}

@inline
function putTwo(out: usize, apart: usize, y: v128, z: v128, accumulate: bool): void {
  put(out, y, accumulate);
  put(out + apart, z, accumulate);
}
