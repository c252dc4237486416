// Affine weights with int8 activations: x ≈ scale · q, one scale a weight group, q in −127 … 127.
// The integer dot product is exact, so its order is free; group results add up in order.
import { madd } from "./math";

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
  const groups = cols / group;
  const step = period * 4;
  for (let g: i32 = 0; g < groups; g++) {
    const base = x + (((g * group) as usize) << 2);
    let peak = f32x4.splat(0);
    for (let v: i32 = 0; v < group; v += 4) {
      peak = f32x4.max(peak, f32x4.abs(v128.load(base + ((v as usize) << 2))));
    }
    const top = max(
      max(f32x4.extract_lane(peak, 0), f32x4.extract_lane(peak, 1)),
      max(f32x4.extract_lane(peak, 2), f32x4.extract_lane(peak, 3)),
    );
    const scale: f32 = top / 127;
    const inverse: f32 = top > 0 ? 127 / top : 0;
    let sum: i32 = 0;
    for (let c: i32 = 0; c < group; c++) {
      const q = nearest(load<f32>(base + ((c as usize) << 2)) * inverse) as i32;
      sum += q;
      const within = c % step;
      const j = within >> 2;
      const lane = within & 3;
      const at = period == 8 ? ((j & 1) << 4) + (lane << 2) + (j >> 1) : (lane << 2) + j;
      store<i8>(out + ((g * group + c - within + at) as usize), q as i8);
    }
    store<f32>(scales + ((g as usize) << 2), scale);
    store<f32>(sums + ((g as usize) << 2), scale * (sum as f32));
  }
}

/** acc + Σ over each lane's four bytes of a (signed) · b (0 … 15). */
@inline
function dot(a: v128, b: v128, acc: v128): v128 {
  if (ASC_FEATURE_RELAXED_SIMD) return i32x4.relaxed_dot_i8x16_i7x16_add_s(a, b, acc);
  const low = i32x4.extadd_pairwise_i16x8_s(i16x8.extmul_low_i8x16_s(a, b));
  const high = i32x4.extadd_pairwise_i16x8_s(i16x8.extmul_high_i8x16_s(a, b));
  return i32x4.add(acc, i32x4.add(low, high));
}

@inline
function laneSums(a: v128, b: v128, c: v128, d: v128): v128 {
  const ab = i32x4.add(v128.shuffle<i32>(a, b, 0, 4, 2, 6), v128.shuffle<i32>(a, b, 1, 5, 3, 7));
  const cd = i32x4.add(v128.shuffle<i32>(c, d, 0, 4, 2, 6), v128.shuffle<i32>(c, d, 1, 5, 3, 7));
  return i32x4.add(v128.shuffle<i32>(ab, cd, 0, 1, 4, 5), v128.shuffle<i32>(ab, cd, 2, 3, 6, 7));
}

/** Four outputs of one activation row. `period` 8: 4-bit codes; 4: 8-bit codes. */
export function int8Row(
  codes: usize,
  scales: usize,
  groups: i32,
  group: i32,
  period: i32,
  x: usize,
  xScales: usize,
  xSums: usize,
): v128 {
  const steps = group / (period * 4);
  const nibble = i8x16.splat(0xf);
  let acc = f32x4.splat(0);
  for (let g: i32 = 0; g < groups; g++) {
    let d0 = i32x4.splat(0);
    let d1 = d0;
    let d2 = d0;
    let d3 = d0;
    let e0 = d0;
    let e1 = d0;
    let e2 = d0;
    let e3 = d0;
    for (let s: i32 = 0; s < steps; s++) {
      const c0 = v128.load(codes);
      const c1 = v128.load(codes, 16);
      const c2 = v128.load(codes, 32);
      const c3 = v128.load(codes, 48);
      const low = v128.load(x);
      const high = period == 8 ? v128.load(x, 16) : low;
      d0 = dot(low, v128.and(c0, nibble), d0);
      d1 = dot(low, v128.and(c1, nibble), d1);
      d2 = dot(low, v128.and(c2, nibble), d2);
      d3 = dot(low, v128.and(c3, nibble), d3);
      e0 = dot(high, i8x16.shr_u(c0, 4), e0);
      e1 = dot(high, i8x16.shr_u(c1, 4), e1);
      e2 = dot(high, i8x16.shr_u(c2, 4), e2);
      e3 = dot(high, i8x16.shr_u(c3, 4), e3);
      codes += 64;
      x += period == 8 ? 32 : 16;
    }
    let upper = laneSums(e0, e1, e2, e3);
    if (period == 4) upper = i32x4.shl(upper, 4);
    const whole = f32x4.convert_i32x4_s(i32x4.add(laneSums(d0, d1, d2, d3), upper));
    acc = madd(f32x4.mul(whole, v128.load32_splat(xScales)), v128.load(scales), acc);
    acc = madd(v128.load(scales, 16), v128.load32_splat(xSums), acc);
    scales += 32;
    xScales += 4;
    xSums += 4;
  }
  return acc;
}
