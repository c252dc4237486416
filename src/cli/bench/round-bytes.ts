import { derivedSizes } from "../../model/shape.ts";
import { readBytesOf } from "../../weights/read-bytes.ts";
import type { Weights } from "../../weights/weights.ts";

/** Bytes that a round of `rows` must move: each read or written once. */
export function roundBytes(
  weights: Weights,
  rows: number,
  context: number,
  kvBytes: number,
): number {
  const { linearLayers, stateFloats, fullLayers, kvDim } = derivedSizes(weights.shape);
  const stateBytes = 2 * 4 * linearLayers * stateFloats;
  return readBytesOf(weights) + stateBytes + 2 * kvBytes * fullLayers * kvDim * (context + rows);
}
