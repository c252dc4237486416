import { floatBytes } from "./floats.ts";
import type { Matrix } from "./weights.ts";

/** Bytes of a matrix as files store it; scales and biases of 16 bits. */
export function matrixBytes(matrix: Matrix): number {
  const count = matrix.rows * matrix.cols;
  if (matrix.kind === "dense") return count * floatBytes[matrix.dtype];
  return (count * matrix.bits) / 8 + (count / matrix.groupSize) * 4;
}
