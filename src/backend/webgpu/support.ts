import { InputError } from "../../errors.ts";
import type { ModelShape } from "../../model/shape.ts";

/** Refuses shapes whose vectors don't divide as the kernels need; every released model's do. */
export function checkShape(shape: ModelShape): void {
  const divisors: readonly [keyof ModelShape, number][] = [
    ["hiddenSize", 4],
    ["headDim", 4],
    ["linearKeyDim", 8],
    ["linearValueDim", 4],
    ["rotaryDim", 2],
  ];
  for (const [field, divisor] of divisors) {
    const value = shape[field] as number;
    if (value % divisor === 0) continue;
    throw new InputError(
      `The webgpu backend needs ${field} to be a multiple of ${divisor}, not ${value}. ` +
        "The reference backend runs any shape.",
    );
  }
}

/** The largest power of two up to `most` that divides `value`. */
export function powerOfTwoDivisor(value: number, most: number): number {
  let divisor = most;
  while (value % divisor !== 0) divisor /= 2;
  return divisor;
}
