// Small functions by which the host finds out what this machine's arithmetic does.
import { exp1, madd } from "./math";

/** 1 where a·b + c is fused: with these operands the unfused result is 0. */
export function probeMadd(): i32 {
  const a = f32x4.splat(1.0 + 1.1920929e-7);
  const product = f32x4.mul(a, a);
  const fused = madd(a, a, f32x4.neg(product));
  return f32x4.extract_lane(fused, 0) != 0 ? 1 : 0;
}

/** The four-byte dot products of every pair (x, w), x in −127 … 127 and w in 0 … 15, summed with weights. */
export function probeDot(): i32 {
  let wrong: i32 = 0;
  for (let x: i32 = -127; x <= 127; x++) {
    for (let w: i32 = 0; w < 16; w++) {
      const a = i8x16.splat(x as i8);
      const b = i8x16.splat(w as i8);
      let d = i32x4.splat(0);
      if (ASC_FEATURE_RELAXED_SIMD) d = i32x4.relaxed_dot_i8x16_i7x16_add_s(a, b, d);
      else d = i32x4.splat(4 * x * w);
      if (i32x4.extract_lane(d, 0) != 4 * x * w) wrong++;
    }
  }
  return wrong;
}

export function probeExp(x: f32): f32 {
  return exp1(x);
}
