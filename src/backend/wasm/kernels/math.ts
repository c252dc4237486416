// Vector arithmetic that every kernel shares. Nothing here depends on lane neighbours.

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
  const ab0 = v128.shuffle<i32>(a, b, 0, 4, 2, 6);
  const ab1 = v128.shuffle<i32>(a, b, 1, 5, 3, 7);
  const cd0 = v128.shuffle<i32>(c, d, 0, 4, 2, 6);
  const cd1 = v128.shuffle<i32>(c, d, 1, 5, 3, 7);
  const ab = f32x4.add(ab0, ab1);
  const cd = f32x4.add(cd0, cd1);
  return f32x4.add(v128.shuffle<i32>(ab, cd, 0, 1, 4, 5), v128.shuffle<i32>(ab, cd, 2, 3, 6, 7));
}

/**
 * e^x within 2 ulp: x = n·ln 2 + r, a degree-6 polynomial in r (coefficients of Cephes' expf),
 * times 2^n. Arguments are clamped to the range whose result is a normal number.
 */
export function exp4(x: v128): v128 {
  x = f32x4.min(f32x4.max(x, f32x4.splat(-87.0)), f32x4.splat(88.0));
  const n = f32x4.nearest(f32x4.mul(x, f32x4.splat(1.44269504)));
  let r = f32x4.sub(x, f32x4.mul(n, f32x4.splat(0.693359375)));
  r = f32x4.sub(r, f32x4.mul(n, f32x4.splat(-2.12194440e-4)));
  let p = f32x4.splat(1.9875691500e-4);
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(1.3981999507e-3));
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(8.3334519073e-3));
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(4.1665795894e-2));
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(1.6666665459e-1));
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(5.0000001201e-1));
  p = f32x4.add(f32x4.add(f32x4.mul(p, f32x4.mul(r, r)), r), f32x4.splat(1));
  const power = i32x4.shl(i32x4.add(i32x4.trunc_sat_f32x4_s(n), i32x4.splat(127)), 23);
  return f32x4.mul(p, power);
}

@inline
export function exp1(x: f32): f32 {
  return f32x4.extract_lane(exp4(f32x4.splat(x)), 0);
}

/** 1 / (1 + e^−x). */
@inline
export function sigmoid4(x: v128): v128 {
  return f32x4.div(f32x4.splat(1), f32x4.add(f32x4.splat(1), exp4(f32x4.neg(x))));
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
