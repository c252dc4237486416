import { invariant } from "../errors.ts";
import type { AffineFormat } from "./affine.ts";
import { bf16FromF32, bytesOf, f32FromBf16, narrowToBf16 } from "./floats.ts";
import { hash32, uniform } from "./hash32.ts";
import type { MatrixRole } from "./roles.ts";
import type { AffineMatrix, AffineRows, DenseMatrix } from "./weights.ts";

/** Deviation of the sum of four independent uniform bytes. */
const byteSumDeviation = Math.sqrt((4 * (256 ** 2 - 1)) / 12);

/** A dense matrix of nearly normal values of deviation cols^-½. Rows depend on `seed` alone. */
export function randomDense(role: MatrixRole, seed: number, dtype: "bf16" | "f32"): DenseMatrix {
  const { rows, cols } = role;
  const unit = 1 / (byteSumDeviation * Math.sqrt(cols));
  return {
    kind: "dense",
    rows,
    cols,
    dtype,
    async read(firstRow, rowCount) {
      invariant(firstRow >= 0 && firstRow + rowCount <= rows, `${role.path}: rows out of range`);
      const values = new Float32Array(rowCount * cols);
      for (let row = 0; row < rowCount; row++) {
        const rowSeed = hash32(seed, firstRow + row);
        for (let col = 0; col < cols; col++) {
          values[row * cols + col] = (byteSum(hash32(rowSeed, col)) - 510) * unit;
        }
      }
      return bytesOf(dtype === "f32" ? values : narrowToBf16(values));
    },
  };
}

/**
 * An affine matrix of uniform codes. Scales vary by a quarter around what gives a deviation of
 * cols^-½, half of them are negative as MLX's are, and biases put the middle code near zero.
 */
export function randomAffine(role: MatrixRole, seed: number, format: AffineFormat): AffineMatrix {
  const { rows, cols } = role;
  return {
    kind: "affine",
    rows,
    cols,
    ...format,
    scaleType: "bf16",
    synthetic: true,
    async read(firstRow, rowCount) {
      invariant(firstRow >= 0 && firstRow + rowCount <= rows, `${role.path}: rows out of range`);
      return randomRows(cols, format, seed, firstRow, rowCount);
    },
  };
}

function randomRows(
  cols: number,
  { bits, groupSize }: AffineFormat,
  seed: number,
  firstRow: number,
  rowCount: number,
): AffineRows {
  const groups = cols / groupSize;
  const words = (cols * bits) / 32;
  const codes = new Uint32Array(rowCount * words);
  const scales = new Float32Array(rowCount * groups);
  const biases = new Float32Array(rowCount * groups);
  const step = 1 / (Math.sqrt((4 ** bits - 1) / 12) * Math.sqrt(cols));
  const middle = (2 ** bits - 1) / 2;
  for (let row = 0; row < rowCount; row++) {
    const rowSeed = hash32(seed, firstRow + row);
    for (let word = 0; word < words; word++) codes[row * words + word] = hash32(rowSeed, word);
    for (let group = 0; group < groups; group++) {
      const at = row * groups + group;
      const sign = (hash32(~rowSeed, 2 * group) & 1) === 0 ? 1 : -1;
      const scale = roundBf16(sign * step * (0.75 + 0.5 * uniform(~rowSeed, 2 * group)));
      scales[at] = scale;
      biases[at] = roundBf16(-scale * (middle + uniform(~rowSeed, 2 * group + 1) - 0.5));
    }
  }
  return { codes: new Uint8Array(codes.buffer), scales, biases };
}

function byteSum(word: number): number {
  return (word & 0xff) + ((word >>> 8) & 0xff) + ((word >>> 16) & 0xff) + (word >>> 24);
}

function roundBf16(value: number): number {
  return f32FromBf16(bf16FromF32(value));
}
