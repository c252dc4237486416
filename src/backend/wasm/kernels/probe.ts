// Small functions by which the host finds out what this machine's arithmetic does.
import { addProducts, Narrow, Wide } from "./dots";
import { int8Fours } from "./int8";
import { exp1, madd, writeConstants } from "./math";

/**
 * How many of 2048 multiply-adds are fused: with these operands an unfused one gives 0, a fused one
 * the part that rounding the product drops. Anything between means that results are not steady.
 */
export function probeMadd(): i32 {
  let fused: i32 = 0;
  for (let i: i32 = 1; i <= 2048; i++) {
    const a = f32x4.splat(1.0 + (i as f32) * 1.1920929e-7);
    const dropped = madd(a, a, f32x4.neg(f32x4.mul(a, a)));
    if (f32x4.extract_lane(dropped, 0) != 0) fused++;
  }
  return fused;
}

/** How many sums of products of x in −127 … 127 and w in 0 … 15 are wrong. */
export function probeDot(): i32 {
  let wrong: i32 = 0;
  for (let x: i32 = -127; x <= 127; x++) {
    for (let w: i32 = 0; w < 16; w++) {
      const a = i8x16.splat(x as i8);
      const b = i8x16.splat(w as i8);
      const two = addProducts<Narrow>(i16x8.splat(5), a, b);
      if ((i16x8.extract_lane_s(two, 0) as i32) != 5 + 2 * x * w) wrong++;
      const four = addProducts<Wide>(i32x4.splat(5), a, b);
      if (ASC_FEATURE_RELAXED_SIMD && i32x4.extract_lane(four, 0) != 5 + 4 * x * w) wrong++;
    }
  }
  return wrong;
}

/** Work for a clock: products of zeros at `at` and in the 8 KiB that follow, `times` over. */
export function probeSpeed(wide: bool, at: usize, times: i32): void {
  const out = at + 8192;
  for (let i: i32 = 0; i < times; i++) {
    if (wide) int8Fours<f32, Wide>(at, at, 0, 8, 64, at, at, at, 15, out, 16, 32, false);
    else int8Fours<f32, Narrow>(at, at, 0, 8, 64, at, at, at, 15, out, 16, 32, false);
  }
}

export function probeExp(x: f32): f32 {
  writeConstants();
  return exp1(x);
}
