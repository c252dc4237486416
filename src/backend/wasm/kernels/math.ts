// Vector arithmetic that every kernel shares. Nothing here depends on lane neighbours.
import { CONSTANTS_BASE } from "../layout";

/** a · b + c. Fused where relaxed SIMD is on and the CPU fuses; the start-up probe records which. */
@inline
export function madd(a: v128, b: v128, c: v128): v128 {
  if (ASC_FEATURE_RELAXED_SIMD) return f32x4.relaxed_madd(a, b, c);
  return f32x4.add(f32x4.mul(a, b), c);
}

/** (l0 + l1) + (l2 + l3). */
@inline
export function horizontalSum(a: v128): f32 {
  return (
    f32x4.extract_lane(a, 0) +
    f32x4.extract_lane(a, 1) +
    (f32x4.extract_lane(a, 2) + f32x4.extract_lane(a, 3))
  );
}

/** Lane i is the horizontal sum of the i-th argument, each as horizontalSum would add it. */
@inline
export function horizontalSums(a: v128, b: v128, c: v128, d: v128): v128 {
  const ab01 = v128.shuffle<i32>(a, b, 0, 4, 1, 5);
  const ab23 = v128.shuffle<i32>(a, b, 2, 6, 3, 7);
  const cd01 = v128.shuffle<i32>(c, d, 0, 4, 1, 5);
  const cd23 = v128.shuffle<i32>(c, d, 2, 6, 3, 7);
  const l0 = v128.shuffle<i32>(ab01, cd01, 0, 1, 4, 5);
  const l1 = v128.shuffle<i32>(ab01, cd01, 2, 3, 6, 7);
  const l2 = v128.shuffle<i32>(ab23, cd23, 0, 1, 4, 5);
  const l3 = v128.shuffle<i32>(ab23, cd23, 2, 3, 6, 7);
  return f32x4.add(f32x4.add(l0, l1), f32x4.add(l2, l3));
}

/** Writes, or adds, four outputs. */
@inline
export function put(out: usize, y: v128, accumulate: bool): void {
  v128.store(out, accumulate ? f32x4.add(v128.load(out), y) : y);
}

// Constants that loops need, in memory: V8 loads one by one instruction, and builds it anew by three.
const ONE: i32 = 0;
const EXP_LEAST: i32 = 4;
const EXP_MOST: i32 = 8;
const LOG2_E: i32 = 12;
const LN2_HIGH: i32 = 16;
const LN2_LOW: i32 = 20;
const EXP_P0: i32 = 24;
const EXP_P1: i32 = 28;
const EXP_P2: i32 = 32;
const EXP_P3: i32 = 36;
const EXP_P4: i32 = 40;
const EXP_P5: i32 = 44;
const EXPONENT_BIAS: i32 = 48;

/** Writes the constants. Every thread does, and all write the same. */
export function writeConstants(): void {
  store<f32>(CONSTANTS_BASE + ONE, 1);
  store<f32>(CONSTANTS_BASE + EXP_LEAST, -87.0);
  store<f32>(CONSTANTS_BASE + EXP_MOST, 88.0);
  store<f32>(CONSTANTS_BASE + LOG2_E, 1.44269504);
  store<f32>(CONSTANTS_BASE + LN2_HIGH, 0.693359375);
  store<f32>(CONSTANTS_BASE + LN2_LOW, -2.12194440e-4);
  store<f32>(CONSTANTS_BASE + EXP_P0, 1.9875691500e-4);
  store<f32>(CONSTANTS_BASE + EXP_P1, 1.3981999507e-3);
  store<f32>(CONSTANTS_BASE + EXP_P2, 8.3334519073e-3);
  store<f32>(CONSTANTS_BASE + EXP_P3, 4.1665795894e-2);
  store<f32>(CONSTANTS_BASE + EXP_P4, 1.6666665459e-1);
  store<f32>(CONSTANTS_BASE + EXP_P5, 5.0000001201e-1);
  store<i32>(CONSTANTS_BASE + EXPONENT_BIAS, 127);
}

@inline
function constant(at: i32): v128 {
  return v128.load32_splat(CONSTANTS_BASE + at);
}

/**
 * e^x within 2 ulp: x = n·ln 2 + r, a degree-6 polynomial in r (coefficients of Cephes' expf),
 * times 2^n. Arguments are clamped to the range whose result is a normal number; NaN stays.
 */
export function exp4(x: v128): v128 {
  x = f32x4.pmin(f32x4.pmax(x, constant(EXP_LEAST)), constant(EXP_MOST));
  const n = f32x4.nearest(f32x4.mul(x, constant(LOG2_E)));
  let r = f32x4.sub(x, f32x4.mul(n, constant(LN2_HIGH)));
  r = f32x4.sub(r, f32x4.mul(n, constant(LN2_LOW)));
  let p = constant(EXP_P0);
  p = f32x4.add(f32x4.mul(p, r), constant(EXP_P1));
  p = f32x4.add(f32x4.mul(p, r), constant(EXP_P2));
  p = f32x4.add(f32x4.mul(p, r), constant(EXP_P3));
  p = f32x4.add(f32x4.mul(p, r), constant(EXP_P4));
  p = f32x4.add(f32x4.mul(p, r), constant(EXP_P5));
  p = f32x4.add(f32x4.add(f32x4.mul(p, f32x4.mul(r, r)), r), constant(ONE));
  const power = i32x4.shl(i32x4.add(i32x4.trunc_sat_f32x4_s(n), constant(EXPONENT_BIAS)), 23);
  return f32x4.mul(p, power);
}

@inline
export function exp1(x: f32): f32 {
  return f32x4.extract_lane(exp4(f32x4.splat(x)), 0);
}

/** 1 / (1 + e^−x). */
@inline
export function sigmoid4(x: v128): v128 {
  const one = constant(ONE);
  return f32x4.div(one, f32x4.add(one, exp4(f32x4.neg(x))));
}

@inline
export function silu4(x: v128): v128 {
  return f32x4.mul(x, sigmoid4(x));
}

/** ln(1 + e^x) = max(x, 0) + 2·atanh(e / (2 + e)) with e = e^−|x| (series to z^17, under 1e-8). */
export function softplus(x: f32): f32 {
  const e: f32 = exp1(-abs(x));
  const z: f32 = e / (2 + e);
  const s: f32 = z * z;
  let p: f32 = 1.0 / 17.0;
  for (let k: i32 = 15; k > 0; k -= 2) p = p * s + (1.0 as f32) / (k as f32);
  return max(x, 0 as f32) + 2 * z * p;
}

/** Σ v[i]² over `count` floats (a multiple of 4), one running vector, then its lanes. */
@inline
export function sumOfSquares(v: usize, count: i32): f32 {
  let acc = f32x4.splat(0);
  for (let i: i32 = 0; i < count; i += 4) {
    const x = v128.load(v + ((i as usize) << 2));
    acc = madd(x, x, acc);
  }
  return horizontalSum(acc);
}
