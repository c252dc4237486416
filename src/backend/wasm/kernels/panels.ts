// The products of one weight block, four rows, with a panel of one, two or four rows of activations. All
// panels have the same chains (project.ts), so that it changes no bit which of them a row is in.
//
// A panel's activations lie as prepare.ts leaves them: [four columns, row of the panel].
//
// `mask` is that of the matrix's record. Were it written out, V8 would build the constant vector anew at each
// use, by three instructions; what comes from memory stays in a register. The panels' shapes are what fits the
// 15 registers that V8 has for vectors on x86.
import { horizontalSums, madd, put } from "./math";
import { readAhead } from "./read-ahead";
import {
  biasesOf,
  blockBytes,
  firstPair,
  isAffine,
  lower,
  lowerOffset,
  pairBytes,
  runBytes,
  scaleOf,
  scalesBytes,
  skipBytes,
  upper,
  upperOffset,
} from "./weights";

/** What a chain leaves behind a group: scaled and added, or, of dense weights, itself. */
@inline
function added<T>(chain: v128, scale: v128, sum: v128): v128 {
  return isAffine<T>() ? madd(chain, scale, sum) : chain;
}

/** One row. */
export function oneRow<T, S>(
  codes: usize,
  scales: usize,
  groups: i32,
  group: i32,
  x: usize,
  sums: usize,
  mask: i32,
  out: usize,
  accumulate: bool,
): void {
  const zero = f32x4.splat(0);
  const m = i32x4.splat(mask);
  let pair = firstPair<T>(codes);
  let y0 = zero;
  let y1 = zero;
  let y2 = zero;
  let y3 = zero;
  let bias = zero;
  for (let g: i32 = 0; g < groups; g++) {
    let a0 = zero;
    let a1 = zero;
    let a2 = zero;
    let a3 = zero;
    const end = pair + blockBytes<T>(group);
    for (; pair < end; pair += skipBytes<T>()) {
      readAhead(pair, runBytes<T>() + skipBytes<T>());
      const next = pair + runBytes<T>();
      do {
        let a = v128.load(x);
        a0 = madd(lower<T>(v128.load(pair, lowerOffset<T>()), m), a, a0);
        a1 = madd(lower<T>(v128.load(pair, lowerOffset<T>() + 16), m), a, a1);
        a2 = madd(lower<T>(v128.load(pair, lowerOffset<T>() + 32), m), a, a2);
        a3 = madd(lower<T>(v128.load(pair, lowerOffset<T>() + 48), m), a, a3);
        a = v128.load(x, 16);
        a0 = madd(upper<T>(v128.load(pair, upperOffset<T>()), m), a, a0);
        a1 = madd(upper<T>(v128.load(pair, upperOffset<T>() + 16), m), a, a1);
        a2 = madd(upper<T>(v128.load(pair, upperOffset<T>() + 32), m), a, a2);
        a3 = madd(upper<T>(v128.load(pair, upperOffset<T>() + 48), m), a, a3);
        x += 32;
        pair += pairBytes<T>();
      } while (pair < next);
    }
    y0 = added<T>(a0, scaleOf<T, S>(scales, 0), y0);
    y1 = added<T>(a1, scaleOf<T, S>(scales, 1), y1);
    y2 = added<T>(a2, scaleOf<T, S>(scales, 2), y2);
    y3 = added<T>(a3, scaleOf<T, S>(scales, 3), y3);
    if (isAffine<T>()) bias = madd(biasesOf<S>(scales), v128.load32_splat(sums), bias);
    scales += scalesBytes<S>();
    sums += 4;
  }
  put(out, f32x4.add(horizontalSums(y0, y1, y2, y3), bias), accumulate);
}

/** Two rows; their outputs are `outStride` bytes apart, their group sums lie side by side. */
export function twoRows<T, S>(
  codes: usize,
  scales: usize,
  groups: i32,
  group: i32,
  x: usize,
  sums: usize,
  mask: i32,
  out: usize,
  outStride: usize,
  accumulate: bool,
): void {
  const zero = f32x4.splat(0);
  const m = i32x4.splat(mask);
  let pair = firstPair<T>(codes);
  let y0 = zero;
  let y1 = zero;
  let y2 = zero;
  let y3 = zero;
  let z0 = zero;
  let z1 = zero;
  let z2 = zero;
  let z3 = zero;
  let biasA = zero;
  let biasB = zero;
  for (let g: i32 = 0; g < groups; g++) {
    let a0 = zero;
    let a1 = zero;
    let a2 = zero;
    let a3 = zero;
    let b0 = zero;
    let b1 = zero;
    let b2 = zero;
    let b3 = zero;
    const end = pair + blockBytes<T>(group);
    for (; pair < end; pair += skipBytes<T>()) {
      readAhead(pair, runBytes<T>() + skipBytes<T>());
      const next = pair + runBytes<T>();
      do {
        let a = v128.load(x);
        let b = v128.load(x, 16);
        let w = lower<T>(v128.load(pair, lowerOffset<T>()), m);
        a0 = madd(w, a, a0);
        b0 = madd(w, b, b0);
        w = lower<T>(v128.load(pair, lowerOffset<T>() + 16), m);
        a1 = madd(w, a, a1);
        b1 = madd(w, b, b1);
        w = lower<T>(v128.load(pair, lowerOffset<T>() + 32), m);
        a2 = madd(w, a, a2);
        b2 = madd(w, b, b2);
        w = lower<T>(v128.load(pair, lowerOffset<T>() + 48), m);
        a3 = madd(w, a, a3);
        b3 = madd(w, b, b3);
        a = v128.load(x, 32);
        b = v128.load(x, 48);
        w = upper<T>(v128.load(pair, upperOffset<T>()), m);
        a0 = madd(w, a, a0);
        b0 = madd(w, b, b0);
        w = upper<T>(v128.load(pair, upperOffset<T>() + 16), m);
        a1 = madd(w, a, a1);
        b1 = madd(w, b, b1);
        w = upper<T>(v128.load(pair, upperOffset<T>() + 32), m);
        a2 = madd(w, a, a2);
        b2 = madd(w, b, b2);
        w = upper<T>(v128.load(pair, upperOffset<T>() + 48), m);
        a3 = madd(w, a, a3);
        b3 = madd(w, b, b3);
        x += 64;
        pair += pairBytes<T>();
      } while (pair < next);
    }
    let scale = scaleOf<T, S>(scales, 0);
    y0 = added<T>(a0, scale, y0);
    z0 = added<T>(b0, scale, z0);
    scale = scaleOf<T, S>(scales, 1);
    y1 = added<T>(a1, scale, y1);
    z1 = added<T>(b1, scale, z1);
    scale = scaleOf<T, S>(scales, 2);
    y2 = added<T>(a2, scale, y2);
    z2 = added<T>(b2, scale, z2);
    scale = scaleOf<T, S>(scales, 3);
    y3 = added<T>(a3, scale, y3);
    z3 = added<T>(b3, scale, z3);
    if (isAffine<T>()) {
      const biases = biasesOf<S>(scales);
      biasA = madd(biases, v128.load32_splat(sums), biasA);
      biasB = madd(biases, v128.load32_splat(sums, 4), biasB);
    }
    scales += scalesBytes<S>();
    sums += 8;
  }
  put(out, f32x4.add(horizontalSums(y0, y1, y2, y3), biasA), accumulate);
  put(out + outStride, f32x4.add(horizontalSums(z0, z1, z2, z3), biasB), accumulate);
}

/** Four rows. The weights are walked twice, two rows of them at a time. */
export function fourRows<T, S>(
  codes: usize,
  scales: usize,
  groups: i32,
  group: i32,
  x: usize,
  sums: usize,
  mask: i32,
  scratch: usize,
  out: usize,
  outStride: usize,
  accumulate: bool,
): void {
  halfOfFour<T, S>(codes, scales, groups, group, x, mask, scratch);
  halfOfFour<T, S>(codes + 32, scales + 2 * sizeof<S>(), groups, group, x, mask, scratch + 32);
  const zero = f32x4.splat(0);
  let biasA = zero;
  let biasB = zero;
  let biasC = zero;
  let biasD = zero;
  if (isAffine<T>()) {
    for (let g: i32 = 0; g < groups; g++) {
      const biases = biasesOf<S>(scales);
      biasA = madd(biases, v128.load32_splat(sums), biasA);
      biasB = madd(biases, v128.load32_splat(sums, 4), biasB);
      biasC = madd(biases, v128.load32_splat(sums, 8), biasC);
      biasD = madd(biases, v128.load32_splat(sums, 12), biasD);
      scales += scalesBytes<S>();
      sums += 16;
    }
  }
  finish(scratch, biasA, out, accumulate);
  finish(scratch + 64, biasB, out + outStride, accumulate);
  finish(scratch + 128, biasC, out + 2 * outStride, accumulate);
  finish(scratch + 192, biasD, out + 3 * outStride, accumulate);
}

@inline
function finish(sums: usize, bias: v128, out: usize, accumulate: bool): void {
  const y0 = v128.load(sums);
  const y1 = v128.load(sums, 16);
  const y2 = v128.load(sums, 32);
  const y3 = v128.load(sums, 48);
  put(out, f32x4.add(horizontalSums(y0, y1, y2, y3), bias), accumulate);
}

/** The sums of four rows with two rows of weights, to `out` [row, 4 rows of weights]. */
function halfOfFour<T, S>(
  codes: usize,
  scales: usize,
  groups: i32,
  group: i32,
  x: usize,
  mask: i32,
  out: usize,
): void {
  const zero = f32x4.splat(0);
  const m = i32x4.splat(mask);
  let pair = firstPair<T>(codes);
  let y0 = zero;
  let y1 = zero;
  let y2 = zero;
  let y3 = zero;
  let z0 = zero;
  let z1 = zero;
  let z2 = zero;
  let z3 = zero;
  for (let g: i32 = 0; g < groups; g++) {
    let a0 = zero;
    let a1 = zero;
    let a2 = zero;
    let a3 = zero;
    let b0 = zero;
    let b1 = zero;
    let b2 = zero;
    let b3 = zero;
    const end = pair + blockBytes<T>(group);
    for (; pair < end; pair += skipBytes<T>()) {
      readAhead(pair, runBytes<T>() + skipBytes<T>());
      const next = pair + runBytes<T>();
      do {
        const wa = lower<T>(v128.load(pair, lowerOffset<T>()), m);
        const wb = lower<T>(v128.load(pair, lowerOffset<T>() + 16), m);
        const ua = upper<T>(v128.load(pair, upperOffset<T>()), m);
        const ub = upper<T>(v128.load(pair, upperOffset<T>() + 16), m);
        let v = v128.load(x);
        let u = v128.load(x, 64);
        a0 = madd(ua, u, madd(wa, v, a0));
        b0 = madd(ub, u, madd(wb, v, b0));
        v = v128.load(x, 16);
        u = v128.load(x, 80);
        a1 = madd(ua, u, madd(wa, v, a1));
        b1 = madd(ub, u, madd(wb, v, b1));
        v = v128.load(x, 32);
        u = v128.load(x, 96);
        a2 = madd(ua, u, madd(wa, v, a2));
        b2 = madd(ub, u, madd(wb, v, b2));
        v = v128.load(x, 48);
        u = v128.load(x, 112);
        a3 = madd(ua, u, madd(wa, v, a3));
        b3 = madd(ub, u, madd(wb, v, b3));
        x += 128;
        pair += pairBytes<T>();
      } while (pair < next);
    }
    const scaleA = scaleOf<T, S>(scales, 0);
    const scaleB = scaleOf<T, S>(scales, 1);
    y0 = added<T>(a0, scaleA, y0);
    y1 = added<T>(a1, scaleA, y1);
    y2 = added<T>(a2, scaleA, y2);
    y3 = added<T>(a3, scaleA, y3);
    z0 = added<T>(b0, scaleB, z0);
    z1 = added<T>(b1, scaleB, z1);
    z2 = added<T>(b2, scaleB, z2);
    z3 = added<T>(b3, scaleB, z3);
    scales += scalesBytes<S>();
  }
  v128.store(out, y0);
  v128.store(out, z0, 16);
  v128.store(out, y1, 64);
  v128.store(out, z1, 80);
  v128.store(out, y2, 128);
  v128.store(out, z2, 144);
  v128.store(out, y3, 192);
  v128.store(out, z3, 208);
}
