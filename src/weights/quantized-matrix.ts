import { CheckpointError } from "../errors.ts";
import { type AffineFormat, type QuantizedGroups, quantizeRuns } from "./affine.ts";
import { bytesOf, floatBytes, widen, widenInto } from "./floats.ts";
import type { AffineMatrix, DenseMatrix } from "./weights.ts";

/** Where a matrix comes from, for error messages. */
interface MatrixOrigin {
  readonly file: string;
  readonly name: string;
}

/**
 * Quantises rows of a matrix.
 *
 * @param bytes of whole rows, as the matrix stores them
 * @throws CheckpointError where a value isn't finite, which no group can hold
 */
export function quantizeRows(
  bytes: Uint8Array,
  { cols, dtype }: DenseMatrix,
  firstRow: number,
  format: AffineFormat,
  { file, name }: MatrixOrigin,
): QuantizedGroups {
  const size = floatBytes[dtype];
  return quantizeRuns(bytes.length / size, format, (run, start) => {
    widenInto(run, bytes.subarray(start * size, (start + run.length) * size), dtype);
    if (areFinite(run)) return;
    const rowOf = (value: number) => firstRow + Math.floor(value / cols);
    const place = `rows ${rowOf(start)} to ${rowOf(start + run.length - 1)}`;
    throw new CheckpointError(file, `tensor ${name}: ${place} hold an infinity or NaN`);
  });
}

/** A finite number times zero is a zero, an infinity or NaN times zero a NaN, which every sum keeps. */
function areFinite(values: Float32Array): boolean {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i]! * 0;
  return sum === 0;
}

/** A matrix that is quantised as it is read, with the values that a converted file would have. */
export function quantizedMatrix(
  matrix: DenseMatrix,
  format: AffineFormat,
  origin: MatrixOrigin,
): AffineMatrix {
  const { rows, cols } = matrix;
  return {
    kind: "affine",
    rows,
    cols,
    ...format,
    scaleType: "bf16",
    async read(firstRow, rowCount) {
      const bytes = await matrix.read(firstRow, rowCount);
      const made = quantizeRows(bytes, matrix, firstRow, format, origin);
      return {
        codes: made.codes,
        scales: widen(bytesOf(made.scales), "bf16"),
        biases: widen(bytesOf(made.biases), "bf16"),
      };
    },
  };
}
