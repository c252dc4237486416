import { drafterSizes } from "../../model/drafter-shape.ts";
import type { DraftStep } from "../../model/forward.ts";
import { type Encoding, type Instruction, rowOf, widthOf } from "./encoding.ts";
import {
  OP_DYNAMIC_CONV,
  OP_FEATURE,
  OP_GATHER,
  OP_MOVE_FEATURES,
  PASS_KEEP,
  PASS_MOVES,
} from "./layout.ts";

/** hidden → one of the features of each row's place. */
export function encodeFeature(encoding: Encoding, index: number): Instruction {
  const bytes = 4 * encoding.shape.hiddenSize;
  const rows = rowOf(encoding, "hidden");
  return [OP_FEATURE, encoding.rows, ...rows, ring(encoding), index * bytes, bytes];
}

/** The features of each row's place → features. */
export function encodeGather(encoding: Encoding): Instruction {
  const bytes = 4 * widthOf(encoding, "features");
  return [OP_GATHER, encoding.rows, ...rowOf(encoding, "features"), ring(encoding), 0, bytes];
}

/** Moves the features of kept rows to their places. */
export const encodeMoveFeatures = (encoding: Encoding): Instruction => [
  OP_MOVE_FEATURES,
  PASS_KEEP + PASS_MOVES,
  ring(encoding),
];

/** One side of a sublayer's convolution. */
export function encodeDynamicConv(
  encoding: Encoding,
  { base, side, input, out, accumulate }: DraftStep & { op: "dynamicConv" },
): Instruction {
  const { hiddenSize, convolution } = encoding.drafter!;
  const { kernelDim } = drafterSizes(encoding.drafter!);
  const [kernels, kernelStride] = rowOf(encoding, "draftKernel");
  return [
    OP_DYNAMIC_CONV,
    encoding.rows,
    ...rowOf(encoding, input),
    kernels + 4 * side * (kernelDim / 2),
    kernelStride,
    encoding.tensors.vector(base, 4 * hiddenSize) + 4 * side * 2 * hiddenSize,
    hiddenSize,
    convolution!.groupSize,
    ...rowOf(encoding, out),
    accumulate ? 1 : 0,
  ];
}

/** The ring record of `layout.ts`. */
function ring({ arena, places }: Encoding): number {
  const { at, rows, strideBytes } = places.draft!.features;
  return arena.placeU32([at, rows * strideBytes, rows, strideBytes]);
}
