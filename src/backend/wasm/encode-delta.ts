import { derivedSizes } from "../../model/shape.ts";
import { transposed } from "../arrays.ts";
import { type Encoding, floatWord, type Instruction, rowOf } from "./encoding.ts";
import {
  OP_CONV,
  OP_GATED_NORM,
  OP_KEEP,
  OP_SCAN,
  PASS_KEEP,
  PASS_ROWS,
  WINDOW_ROWS,
} from "./layout.ts";

/** qkv, b, a → conv, gates. */
export function encodeConv(encoding: Encoding, module: string, layer: number): Instruction {
  const { arena, tensors, places, shape } = encoding;
  const sizes = derivedSizes(shape);
  const { convTaps, linearValueHeads } = shape;
  const weights = tensors.vector(`${module}.conv1d`, sizes.convDim * convTaps, (values) =>
    transposed(values, convTaps),
  );
  const rate = tensors.vector(`${module}.A_log`, linearValueHeads, (values) =>
    values.map((value) => -Math.exp(value)),
  );
  const bias = tensors.vector(`${module}.dt_bias`, linearValueHeads);
  const gates = arena.placeU32([
    ...rowOf(encoding, "b"),
    ...rowOf(encoding, "a"),
    rate,
    bias,
    ...rowOf(encoding, "gates"),
  ]);
  return [
    OP_CONV,
    encoding.rows,
    ...rowOf(encoding, "qkv"),
    weights,
    convTaps,
    places.histories[layer]!,
    4 * sizes.historyFloats,
    ...rowOf(encoding, "conv"),
    ...headsOf(encoding),
    gates,
  ];
}

/** conv, gates → delta, the layer's states and histories, or the log of a window. */
export function encodeScan(encoding: Encoding, layer: number): Instruction {
  return [
    OP_SCAN,
    encoding.rows,
    ...rowOf(encoding, "conv"),
    ...rowOf(encoding, "gates"),
    encoding.places.states[layer]!,
    4 * derivedSizes(encoding.shape).stateFloats,
    ...rowOf(encoding, "delta"),
    ...headsOf(encoding),
    rawRows(encoding, layer),
  ];
}

/** Commits windows in one layer. */
export function encodeKeep(encoding: Encoding, layer: number): Instruction {
  return [
    OP_KEEP,
    PASS_KEEP + PASS_ROWS,
    encoding.places.states[layer]!,
    4 * derivedSizes(encoding.shape).stateFloats,
    ...headsOf(encoding),
    rawRows(encoding, layer),
  ];
}

/** delta, z → mixed. */
export function encodeGatedNorm(encoding: Encoding, weight: string): Instruction {
  const { tensors, shape } = encoding;
  return [
    OP_GATED_NORM,
    encoding.rows,
    ...rowOf(encoding, "delta"),
    ...rowOf(encoding, "z"),
    tensors.vector(weight, shape.linearValueDim),
    shape.linearValueHeads,
    shape.linearValueDim,
    floatWord(encoding.normEps),
    ...rowOf(encoding, "mixed"),
  ];
}

/** Where a layer's raw rows, its history and the log of its windows lie. */
function rawRows(encoding: Encoding, layer: number): number {
  const { arena, places, shape } = encoding;
  const sizes = derivedSizes(shape);
  return arena.placeU32([
    ...rowOf(encoding, "qkv"),
    places.histories[layer]!,
    4 * sizes.historyFloats,
    sizes.convDim,
    shape.convTaps - 1,
    places.logs[layer]!,
    WINDOW_ROWS * places.logRowBytes,
    places.logRowBytes,
  ]);
}

function headsOf({ shape }: Encoding): number[] {
  const { linearKeyHeads, linearValueHeads, linearKeyDim, linearValueDim } = shape;
  return [linearKeyHeads, linearValueHeads, linearKeyDim, linearValueDim];
}
