import { InputError } from "../../errors.ts";
import type { DrafterShape } from "../../model/drafter-shape.ts";
import type { ModelShape } from "../../model/shape.ts";
import { SCAN_COLUMNS } from "./layout.ts";

/** Refuses shapes whose vectors don't divide as the kernels need; every released model's do. */
export function checkShapes(shape: ModelShape, drafter: DrafterShape | null): void {
  check("hiddenSize", shape.hiddenSize, 8);
  check("intermediateSize", shape.intermediateSize, 8);
  check("headDim", shape.headDim, 8);
  check("linearKeyDim", shape.linearKeyDim, 8);
  check("linearValueDim", shape.linearValueDim, SCAN_COLUMNS);
  check("rotaryDim", shape.rotaryDim, 2);
  if (!drafter) return;
  check("the drafter's intermediateSize", drafter.intermediateSize, 8);
  check("the drafter's headDim", drafter.headDim, 8);
  if (drafter.convolution) check("the drafter's groupSize", drafter.convolution.groupSize, 4);
}

/** @throws InputError naming the field */
function check(field: string, value: number, divisor: number): void {
  if (value % divisor === 0) return;
  throw new InputError(
    `The wasm backend needs ${field} to be a multiple of ${divisor}, not ${value}. ` +
      "The reference backend runs any shape.",
  );
}
