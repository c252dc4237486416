import { bf16FromF32, widen } from "../../weights/floats.ts";
import { unpackCodes } from "../../weights/packing.ts";
import type { AffineMatrix, AffineRows, DenseMatrix, Matrix } from "../../weights/weights.ts";
import { type Arena, roundUp } from "./arena.ts";
import type { WeightMemories } from "./far.ts";
import {
  BLOCK_ROWS,
  KIND_AFFINE4,
  KIND_AFFINE8,
  KIND_BF16,
  KIND_F32,
  MATRIX_BYTES,
  MATRIX_COLS,
  MATRIX_DATA,
  MATRIX_FAR,
  MATRIX_GROUP,
  MATRIX_KIND,
  MATRIX_MASK,
  MATRIX_NARROW,
  MATRIX_ROWS,
  MATRIX_SCALES,
} from "./layout.ts";

/** Rows that are read and packed at a time. */
const rowsPerRead = 256;

/** Bits that a code or float occupies once packed: 2, 3, 4 → 4; 5, 6, 8 → 8; f16 widens to 32. */
function packedBits(matrix: Matrix): number {
  if (matrix.kind === "affine") return matrix.bits <= 4 ? 4 : 8;
  return matrix.dtype === "bf16" ? 16 : 32;
}

function kindOf(matrix: Matrix): number {
  if (matrix.kind === "affine") return matrix.bits <= 4 ? KIND_AFFINE4 : KIND_AFFINE8;
  return matrix.dtype === "bf16" ? KIND_BF16 : KIND_F32;
}

/** The bits of a word that hold its lowest code; of bf16, its upper float; f32 needs none. */
function maskOf(matrix: Matrix): number {
  if (matrix.kind === "affine") return matrix.bits <= 4 ? 0xf : 0xff;
  return matrix.dtype === "bf16" ? 0xffff0000 : 0;
}

const dataBytes = (matrix: Matrix): number =>
  (roundUp(matrix.rows, BLOCK_ROWS) * matrix.cols * packedBits(matrix)) / 8;

/** Whether scales and biases stay bf16, as the file has them; any others become f32. */
const isNarrow = (matrix: Matrix): boolean =>
  matrix.kind === "affine" && matrix.scaleType === "bf16";

/** Bytes of a block's scales and biases. */
const blockScaleBytes = (matrix: AffineMatrix): number =>
  (8 * (isNarrow(matrix) ? 2 : 4) * matrix.cols) / matrix.groupSize;

const scaleBytes = (matrix: Matrix): number =>
  matrix.kind === "dense" ? 0 : Math.ceil(matrix.rows / BLOCK_ROWS) * blockScaleBytes(matrix);

/** A matrix in an arena. */
export interface PlacedMatrix {
  readonly matrix: Matrix;
  /** The number of the memory that has it (far.ts). */
  readonly far: number;
  readonly data: number;
  readonly scales: number;
}

/**
 * Places a matrix in the block layout of `kernels/weights.ts`; it is read and packed a few rows at a time,
 * and rows past the last are zero.
 */
export function placeMatrix(memories: WeightMemories, matrix: Matrix): PlacedMatrix {
  const sizes = [dataBytes(matrix), scaleBytes(matrix)].map((bytes) => roundUp(bytes, 64));
  const [arena, far] = memories.arenaFor(sizes[0]! + sizes[1]!);
  const data = arena.place(sizes[0]!);
  const scales = arena.place(sizes[1]!);
  arena.later(async () => {
    for (let row = 0; row < matrix.rows; row += rowsPerRead) {
      const count = Math.min(rowsPerRead, matrix.rows - row);
      if (matrix.kind === "affine") await packAffine(arena, matrix, row, count, data, scales);
      else await packDense(arena, matrix, row, count, data);
    }
  });
  return { matrix, far, data, scales };
}

/** Places the record by which kernels know the first rows of a matrix. Returns its address. */
export function placeRecord(arena: Arena, placed: PlacedMatrix, rows: number): number {
  const { matrix, far, data, scales } = placed;
  const words = new Array<number>(MATRIX_BYTES / 4).fill(0);
  words[MATRIX_KIND / 4] = kindOf(matrix);
  words[MATRIX_ROWS / 4] = rows;
  words[MATRIX_COLS / 4] = matrix.cols;
  words[MATRIX_GROUP / 4] = matrix.kind === "affine" ? matrix.groupSize : 0;
  words[MATRIX_DATA / 4] = data;
  words[MATRIX_SCALES / 4] = scales;
  words[MATRIX_MASK / 4] = maskOf(matrix);
  words[MATRIX_NARROW / 4] = isNarrow(matrix) ? 1 : 0;
  words[MATRIX_FAR / 4] = far;
  return arena.placeU32(words);
}

async function packAffine(
  arena: Arena,
  matrix: AffineMatrix,
  firstRow: number,
  count: number,
  data: number,
  scales: number,
): Promise<void> {
  const rows = await matrix.read(firstRow, count);
  const { cols } = matrix;
  const codes = unpackCodes(rows.codes, matrix.bits);
  const bits = matrix.bits <= 4 ? 4 : 8;
  const step = 128 / bits;
  const blockWords = (cols / step) * 16;
  for (let row = firstRow; row < firstRow + count; row++) {
    const local = row - firstRow;
    const block = Math.floor(row / BLOCK_ROWS);
    const lane = row % BLOCK_ROWS;
    const out = arena.u32(data + block * blockWords * 4, blockWords);
    packRow(codes, local * cols, cols, bits, out, lane * 4);
    packScales(arena, matrix, rows, local, scales + block * blockScaleBytes(matrix), lane);
  }
}

/** A row's scales and biases to its lanes of its block's. */
function packScales(
  arena: Arena,
  matrix: AffineMatrix,
  { scales, biases }: AffineRows,
  row: number,
  at: number,
  lane: number,
): void {
  const groups = matrix.cols / matrix.groupSize;
  const narrow = isNarrow(matrix);
  const out = narrow ? arena.u16(at, 8 * groups) : arena.f32(at, 8 * groups);
  for (let group = 0; group < groups; group++) {
    const scale = scales[row * groups + group]!;
    const bias = biases[row * groups + group]!;
    out[8 * group + lane] = narrow ? bf16FromF32(scale) : scale;
    out[8 * group + 4 + lane] = narrow ? bf16FromF32(bias) : bias;
  }
}

/** Word l of a step gathers the codes of columns l, 4 + l, 8 + l, … of that step, lowest bits first. */
function packRow(
  codes: Uint8Array,
  from: number,
  cols: number,
  bits: 4 | 8,
  out: Uint32Array,
  lane: number,
): void {
  const step = 128 / bits;
  for (let column = 0; column < cols; column += step) {
    const at = (column / step) * 16 + lane;
    const first = from + column;
    for (let l = 0; l < 4; l++)
      out[at + l] = bits === 4 ? nibblesFrom(codes, first + l) : bytesFrom(codes, first + l);
  }
}

// Written out: a loop over the codes of a word takes three times as long.

const nibblesFrom = (codes: Uint8Array, at: number): number =>
  codes[at]! |
  (codes[at + 4]! << 4) |
  (codes[at + 8]! << 8) |
  (codes[at + 12]! << 12) |
  (codes[at + 16]! << 16) |
  (codes[at + 20]! << 20) |
  (codes[at + 24]! << 24) |
  (codes[at + 28]! << 28);

const bytesFrom = (codes: Uint8Array, at: number): number =>
  codes[at]! | (codes[at + 4]! << 8) | (codes[at + 8]! << 16) | (codes[at + 12]! << 24);

async function packDense(
  arena: Arena,
  matrix: DenseMatrix,
  firstRow: number,
  count: number,
  data: number,
): Promise<void> {
  const bytes = await matrix.read(firstRow, count);
  const bf16 = matrix.dtype === "bf16";
  const values = bf16 ? new Uint16Array(bytes.slice().buffer) : null;
  const floats = bf16 ? null : widen(bytes, matrix.dtype);
  const step = bf16 ? 8 : 4;
  const blockWords = (matrix.cols / step) * 16;
  for (let row = firstRow; row < firstRow + count; row++) {
    const from = (row - firstRow) * matrix.cols;
    const at = data + Math.floor(row / BLOCK_ROWS) * blockWords * 4;
    const lane = (row % BLOCK_ROWS) * 4;
    const words = arena.u32(at, blockWords);
    const singles = arena.f32(at, blockWords);
    for (let column = 0; column < matrix.cols; column += step) {
      for (let l = 0; l < 4; l++) {
        const to = (column / step) * 16 + lane + l;
        const source = from + column + l;
        if (values) words[to] = values[source]! | (values[source + 4]! << 16);
        else singles[to] = floats![source]!;
      }
    }
  }
}
