// Affine weight blocks: four rows of codes side by side, one cache line a step.
//
// 4-bit: a step is 32 columns; row n's 16 bytes are four words, word l holding the codes of columns
// l, 4 + l, …, 28 + l in its nibbles, lowest first. 8-bit: a step is 16 columns, byte j of word l is
// column 4j + l. Codes become floats in place: masking nibble j of a word gives code · 2^(4j), which
// f32 holds exactly, and prepare.ts has scaled the activation by 2^(−4j).
import { SCRATCH_DECODED } from "../layout";
import { horizontalSums, madd } from "./math";
import { addBiases, addStep, clearTile, finishTile } from "./tile";

@inline
function masked(codes: v128, mask: u32): v128 {
  return f32x4.convert_i32x4_s(v128.and(codes, i32x4.splat(mask)));
}

@inline
function shifted(codes: v128, bits: i32): v128 {
  return f32x4.convert_i32x4_s(i32x4.shr_u(codes, bits));
}

/** Four outputs of one activation row, 4-bit codes. */
export function affine4Row(
  codes: usize,
  scales: usize,
  groups: i32,
  steps: i32,
  x: usize,
  sums: usize,
): v128 {
  const zero = f32x4.splat(0);
  let acc0 = zero;
  let acc1 = zero;
  let acc2 = zero;
  let acc3 = zero;
  let bias = zero;
  for (let g: i32 = 0; g < groups; g++) {
    let d0 = zero;
    let d1 = zero;
    let d2 = zero;
    let d3 = zero;
    for (let s: i32 = 0; s < steps; s++) {
      const c0 = v128.load(codes);
      const c1 = v128.load(codes, 16);
      const c2 = v128.load(codes, 32);
      const c3 = v128.load(codes, 48);
      let v = v128.load(x);
      d0 = madd(masked(c0, 0xf), v, d0);
      d1 = madd(masked(c1, 0xf), v, d1);
      d2 = madd(masked(c2, 0xf), v, d2);
      d3 = madd(masked(c3, 0xf), v, d3);
      v = v128.load(x, 16);
      d0 = madd(masked(c0, 0xf0), v, d0);
      d1 = madd(masked(c1, 0xf0), v, d1);
      d2 = madd(masked(c2, 0xf0), v, d2);
      d3 = madd(masked(c3, 0xf0), v, d3);
      v = v128.load(x, 32);
      d0 = madd(masked(c0, 0xf00), v, d0);
      d1 = madd(masked(c1, 0xf00), v, d1);
      d2 = madd(masked(c2, 0xf00), v, d2);
      d3 = madd(masked(c3, 0xf00), v, d3);
      v = v128.load(x, 48);
      d0 = madd(masked(c0, 0xf000), v, d0);
      d1 = madd(masked(c1, 0xf000), v, d1);
      d2 = madd(masked(c2, 0xf000), v, d2);
      d3 = madd(masked(c3, 0xf000), v, d3);
      v = v128.load(x, 64);
      d0 = madd(masked(c0, 0xf0000), v, d0);
      d1 = madd(masked(c1, 0xf0000), v, d1);
      d2 = madd(masked(c2, 0xf0000), v, d2);
      d3 = madd(masked(c3, 0xf0000), v, d3);
      v = v128.load(x, 80);
      d0 = madd(masked(c0, 0xf00000), v, d0);
      d1 = madd(masked(c1, 0xf00000), v, d1);
      d2 = madd(masked(c2, 0xf00000), v, d2);
      d3 = madd(masked(c3, 0xf00000), v, d3);
      v = v128.load(x, 96);
      d0 = madd(masked(c0, 0xf000000), v, d0);
      d1 = madd(masked(c1, 0xf000000), v, d1);
      d2 = madd(masked(c2, 0xf000000), v, d2);
      d3 = madd(masked(c3, 0xf000000), v, d3);
      v = v128.load(x, 112);
      d0 = madd(shifted(c0, 28), v, d0);
      d1 = madd(shifted(c1, 28), v, d1);
      d2 = madd(shifted(c2, 28), v, d2);
      d3 = madd(shifted(c3, 28), v, d3);
      codes += 64;
      x += 128;
    }
    acc0 = madd(d0, v128.load32_splat(scales), acc0);
    acc1 = madd(d1, v128.load32_splat(scales, 4), acc1);
    acc2 = madd(d2, v128.load32_splat(scales, 8), acc2);
    acc3 = madd(d3, v128.load32_splat(scales, 12), acc3);
    bias = madd(v128.load(scales, 16), v128.load32_splat(sums), bias);
    scales += 32;
    sums += 4;
  }
  return f32x4.add(horizontalSums(acc0, acc1, acc2, acc3), bias);
}

/** Four outputs of one activation row, 8-bit codes. */
export function affine8Row(
  codes: usize,
  scales: usize,
  groups: i32,
  steps: i32,
  x: usize,
  sums: usize,
): v128 {
  const zero = f32x4.splat(0);
  let acc0 = zero;
  let acc1 = zero;
  let acc2 = zero;
  let acc3 = zero;
  let bias = zero;
  for (let g: i32 = 0; g < groups; g++) {
    let d0 = zero;
    let d1 = zero;
    let d2 = zero;
    let d3 = zero;
    for (let s: i32 = 0; s < steps; s++) {
      const c0 = v128.load(codes);
      const c1 = v128.load(codes, 16);
      const c2 = v128.load(codes, 32);
      const c3 = v128.load(codes, 48);
      let v = v128.load(x);
      d0 = madd(masked(c0, 0xff), v, d0);
      d1 = madd(masked(c1, 0xff), v, d1);
      d2 = madd(masked(c2, 0xff), v, d2);
      d3 = madd(masked(c3, 0xff), v, d3);
      v = v128.load(x, 16);
      d0 = madd(masked(c0, 0xff00), v, d0);
      d1 = madd(masked(c1, 0xff00), v, d1);
      d2 = madd(masked(c2, 0xff00), v, d2);
      d3 = madd(masked(c3, 0xff00), v, d3);
      v = v128.load(x, 32);
      d0 = madd(masked(c0, 0xff0000), v, d0);
      d1 = madd(masked(c1, 0xff0000), v, d1);
      d2 = madd(masked(c2, 0xff0000), v, d2);
      d3 = madd(masked(c3, 0xff0000), v, d3);
      v = v128.load(x, 48);
      d0 = madd(shifted(c0, 24), v, d0);
      d1 = madd(shifted(c1, 24), v, d1);
      d2 = madd(shifted(c2, 24), v, d2);
      d3 = madd(shifted(c3, 24), v, d3);
      codes += 64;
      x += 64;
    }
    acc0 = madd(d0, v128.load32_splat(scales), acc0);
    acc1 = madd(d1, v128.load32_splat(scales, 4), acc1);
    acc2 = madd(d2, v128.load32_splat(scales, 8), acc2);
    acc3 = madd(d3, v128.load32_splat(scales, 12), acc3);
    bias = madd(v128.load(scales, 16), v128.load32_splat(sums), bias);
    scales += 32;
    sums += 4;
  }
  return f32x4.add(horizontalSums(acc0, acc1, acc2, acc3), bias);
}

/** Decodes one step of codes (64 bytes, four rows) to `period` vectors a row; returns the end. */
@inline
export function decodeStep(codes: usize, out: usize, period: i32): usize {
  const bits = 32 / period;
  for (let n: usize = 0; n < 64; n += 16) {
    const c = v128.load(codes + n);
    let mask: u32 = (1 << bits) - 1;
    for (let j: i32 = 0; j < period - 1; j++) {
      v128.store(out + ((j as usize) << 6) + n, masked(c, mask));
      mask <<= bits;
    }
    v128.store(out + (((period - 1) as usize) << 6) + n, shifted(c, 32 - bits));
  }
  return out + ((period as usize) << 6);
}

/** The block's four outputs for every activation row of a tile; same chains as the row kernels. */
export function affineTile(
  codes: usize,
  scales: usize,
  groups: i32,
  group: i32,
  period: i32,
  rows: i32,
  x: usize,
  xStride: usize,
  sums: usize,
  scratch: usize,
  out: usize,
  outStride: usize,
  accumulate: bool,
): void {
  const steps = group / (period * 4);
  const vectors = group >> 2;
  const sumsStride = (groups as usize) << 2;
  clearTile(scratch, rows);
  for (let g: i32 = 0; g < groups; g++) {
    let decoded = scratch + SCRATCH_DECODED;
    for (let s: i32 = 0; s < steps; s++) {
      decoded = decodeStep(codes, decoded, period);
      codes += 64;
    }
    addStep(scratch, rows, vectors, x, xStride, scales);
    addBiases(scratch, rows, scales + 16, sums, sumsStride);
    x += (group as usize) << 2;
    scales += 32;
    sums += 4;
  }
  finishTile(scratch, rows, out, outStride, accumulate);
}
