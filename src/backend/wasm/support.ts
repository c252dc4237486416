import { InputError } from "../../errors.ts";
import type { ModelShape } from "../../model/shape.ts";
import { SCAN_COLUMNS } from "./layout.ts";

/** Refuses shapes whose vectors don't divide as the kernels need; every released model's do. */
export function checkShape(shape: ModelShape): void {
  const divisors: readonly [keyof ModelShape, number][] = [
    ["hiddenSize", 8],
    ["intermediateSize", 8],
    ["headDim", 8],
    ["linearKeyDim", 8],
    ["linearValueDim", SCAN_COLUMNS],
    ["rotaryDim", 2],
  ];
  for (const [field, divisor] of divisors) {
    const value = shape[field] as number;
    if (value % divisor === 0) continue;
    throw new InputError(
      `The wasm backend needs ${field} to be a multiple of ${divisor}, not ${value}. ` +
        "The reference backend runs any shape.",
    );
  }
}
