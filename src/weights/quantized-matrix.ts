import { CheckpointError } from "../errors.ts";
import { type AffineFormat, quantizeGroups } from "./affine.ts";
import { bytesOf, widen } from "./floats.ts";
import type { AffineMatrix, DenseMatrix } from "./weights.ts";

/** Where a matrix comes from, for error messages. */
interface MatrixOrigin {
  readonly file: string;
  readonly name: string;
}

/** Rows of a matrix as f32. @throws CheckpointError where one isn't finite, which no group can hold */
export async function finiteRows(
  matrix: DenseMatrix,
  firstRow: number,
  rowCount: number,
  { file, name }: MatrixOrigin,
): Promise<Float32Array> {
  const values = widen(await matrix.read(firstRow, rowCount), matrix.dtype);
  if (areFinite(values)) return values;
  const place = `rows ${firstRow} to ${firstRow + rowCount - 1}`;
  throw new CheckpointError(file, `tensor ${name}: ${place} hold an infinity or NaN`);
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
      const values = await finiteRows(matrix, firstRow, rowCount, origin);
      const { codes, scales, biases } = quantizeGroups(values, format);
      return {
        codes,
        scales: widen(bytesOf(scales), "bf16"),
        biases: widen(bytesOf(biases), "bf16"),
      };
    },
  };
}
