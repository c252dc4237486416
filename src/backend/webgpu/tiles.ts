import { f16FromF32, widen } from "../../weights/floats.ts";
import { unpackCodes } from "../../weights/packing.ts";
import type { Matrix } from "../../weights/weights.ts";
import type { BufferSource } from "./device-memory.ts";
import type { Synthesise } from "./matrices.ts";
import type { Defines } from "./preprocess.ts";

/** Columns of a block (kernels/tiles_common.wgsl). */
const blockColumns = 64;
const blockRows = 16;
/** Rows are padded to what the largest workgroup makes. */
export const tileRows = 128;
/** Bytes that are packed and uploaded at a time. */
const uploadBytes = 8 * 2 ** 20;

/** A matrix whose output begins at column `at` of what its neighbours make too; a multiple of 128. */
export interface TileMember {
  readonly matrix: Matrix;
  readonly at: number;
}

/** Output columns [firstColumn, firstColumn + columns) of a matrix, or of several side by side. */
export interface TilePart {
  readonly firstColumn: number;
  readonly columns: number;
  readonly codes: GPUBuffer;
  readonly scales: GPUBuffer;
}

/** Matrices that share an input, in the layout of kernels/tiles_common.wgsl. */
export interface DeviceTiles {
  /** Of 64 input columns. */
  readonly blocks: number;
  readonly form: TileForm;
  readonly parts: readonly TilePart[];
}

/** How the numbers of a block lie. */
export interface TileForm {
  /** Bits a column takes: codes of 2, 3, 4 → 4; 5, 6, 8 → 8; floats are rounded to f16. */
  readonly kind: 4 | 8 | 16;
  /** Groups that a block of columns touches. */
  readonly groups: 1 | 2;
  /** Words a row and block, of scales and biases: f16 pairs for 4 bits, f32 for 8. */
  readonly scaleWords: number;
}

export function tileForm(matrix: Matrix): TileForm {
  if (matrix.kind === "dense") return { kind: 16, groups: 1, scaleWords: 0 };
  const groups = matrix.groupSize < blockColumns ? 2 : 1;
  if (matrix.bits <= 4) return { kind: 4, groups, scaleWords: groups };
  return { kind: 8, groups, scaleWords: 2 * groups };
}

/** Whether two matrices may lie in one. */
export const sameForm = (a: Matrix, b: Matrix): boolean =>
  a.cols === b.cols && JSON.stringify(tileForm(a)) === JSON.stringify(tileForm(b));

export const blocksOf = (cols: number): number => Math.ceil(cols / blockColumns);

/** Defines of the kernels that read matrices of this form. */
export function formDefines({ kind, groups, scaleWords }: TileForm): Defines {
  return {
    KIND: kind,
    CHUNKS: kind / 4,
    SCALE_WORDS: scaleWords,
    GROUP_TILES: 4 / groups,
    GROUP_CHUNKS: 2 / groups,
    LAST_GROUP: groups - 1,
  };
}

interface BlockBytes {
  /** Of 16 rows. */
  readonly codes: number;
  readonly scales: number;
}

function blockBytes({ kind, scaleWords }: TileForm, blocks: number): BlockBytes {
  return { codes: blocks * kind * 128, scales: blocks * scaleWords * 64 };
}

/** Columns of output that one part has where a binding has at most `bindingBytesMax`. */
function partColumnsMax(form: TileForm, blocks: number, bindingBytesMax: number): number {
  const bytes = (tileRows / blockRows) * blockBytes(form, blocks).codes;
  return tileRows * Math.max(1, Math.floor(bindingBytesMax / bytes));
}

/** In how many parts a matrix is uploaded. */
export function tilePartsOf(matrix: Matrix, bindingBytesMax: number): number {
  const most = partColumnsMax(tileForm(matrix), blocksOf(matrix.cols), bindingBytesMax);
  return Math.ceil(matrix.rows / most) + 1;
}

/** Takes the buffers of matrices of one form and input. */
export async function placeTiles(
  memory: BufferSource,
  label: string,
  members: readonly TileMember[],
): Promise<DeviceTiles> {
  const first = members[0]!.matrix;
  const form = tileForm(first);
  const blocks = blocksOf(first.cols);
  const begin = members[0]!.at;
  const last = members.at(-1)!;
  const end = begin + Math.ceil((last.at - begin + last.matrix.rows) / tileRows) * tileRows;
  const most = partColumnsMax(form, blocks, memory.bufferBytesMax);
  const bytes = blockBytes(form, blocks);
  const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST;
  const parts: TilePart[] = [];
  for (let firstColumn = begin; firstColumn < end; firstColumn += most) {
    const columns = Math.min(most, end - firstColumn);
    const count = columns / blockRows;
    const codes = await memory.create(label, count * bytes.codes, usage);
    const scales = await memory.create(`${label} scales`, count * bytes.scales, usage);
    parts.push({ firstColumn, columns, codes, scales });
  }
  return { blocks, form, parts };
}

/** Fills what was placed for the members, a few rows at a time. */
export async function fillTiles(
  device: GPUDevice,
  members: readonly TileMember[],
  { blocks, form, parts }: DeviceTiles,
  synthesise: Synthesise | null,
): Promise<void> {
  const first = members[0]!.matrix;
  const bytes = blockBytes(form, blocks);
  for (const part of parts) {
    if (synthesise && first.kind === "affine" && members.every(isSynthetic)) {
      const { codes, scales, columns } = part;
      const count = columns / blockRows;
      const scaleForm = form.kind === 4 ? "f16" : "f32Split";
      await synthesise(codes, scales, first, count * bytes.codes, count * bytes.scales, scaleForm);
    } else {
      for (const member of members) await fillPart(device, part, member, form, blocks);
    }
  }
}

const isSynthetic = ({ matrix }: TileMember) => matrix.kind === "affine" && matrix.synthetic;

/** Writes the rows of a member that lie in a part. */
async function fillPart(
  device: GPUDevice,
  part: TilePart,
  { matrix, at }: TileMember,
  form: TileForm,
  blocks: number,
): Promise<void> {
  const bytes = blockBytes(form, blocks);
  const from = Math.max(0, part.firstColumn - at);
  const to = Math.min(matrix.rows, part.firstColumn + part.columns - at);
  const step = blockRows * Math.max(1, Math.floor(uploadBytes / bytes.codes));
  for (let row = from; row < to; row += step) {
    const count = Math.min(step, to - row);
    const packed = await packRows(matrix, form, blocks, row, count);
    const block = (at + row - part.firstColumn) / blockRows;
    device.queue.writeBuffer(part.codes, block * bytes.codes, packed.codes);
    if (form.scaleWords > 0) {
      device.queue.writeBuffer(part.scales, block * bytes.scales, packed.scales);
    }
  }
}

interface PackedRows {
  readonly codes: Uint32Array<ArrayBuffer>;
  readonly scales: Uint32Array<ArrayBuffer>;
}

async function packRows(
  matrix: Matrix,
  form: TileForm,
  blocks: number,
  firstRow: number,
  count: number,
): Promise<PackedRows> {
  const rowBlocks = Math.ceil(count / blockRows);
  const codes = new Uint32Array((rowBlocks * blockBytes(form, blocks).codes) / 4);
  const scales = new Uint32Array(rowBlocks * blocks * form.scaleWords * blockRows);
  const { cols } = matrix;
  let values: ArrayLike<number>;
  if (matrix.kind === "affine") {
    const rows = await matrix.read(firstRow, count);
    values = unpackCodes(rows.codes, matrix.bits);
    packScales(scales, form, blocks, matrix.groupSize, count, rows.scales, rows.biases);
  } else {
    values = widen(await matrix.read(firstRow, count), matrix.dtype).map(f16FromF32);
  }
  const chunks = form.kind / 4;
  const place = placeOf[form.kind];
  for (let row = 0; row < count; row++) {
    const rowBlock = Math.floor(row / blockRows) * blocks;
    for (let column = 0; column < cols; column++) {
      const { chunk, word, shift } = place[column % blockColumns]!;
      const lane = (row % blockRows) + blockRows * ((column >> 3) & 1);
      const block = rowBlock + (column >> 6);
      const at = ((block * chunks + chunk) * 32 + lane) * 4 + word;
      codes[at] = codes[at]! | (values[row * cols + column]! << shift);
    }
  }
  return { codes, scales };
}

/** Where each column of a block stands in its lane's vectors. */
const placeOf = {
  4: placesOf((tile, j) => [0, tile, 4 * ((j >> 1) + 4 * (j & 1))]),
  8: placesOf((tile, j) => [tile >> 1, 2 * (tile & 1) + (j >> 2), 8 * (j & 3)]),
  16: placesOf((tile, j) => [tile, j >> 1, 16 * (j & 1)]),
};

function placesOf(place: (tile: number, j: number) => [number, number, number]) {
  return Array.from({ length: blockColumns }, (_, column) => {
    const [chunk, word, shift] = place(column >> 4, column & 7);
    return { chunk, word, shift };
  });
}

/** [16-row block, column block, word, 16 rows]; groups past the last column are zero. */
function packScales(
  out: Uint32Array,
  { kind, groups, scaleWords }: TileForm,
  blocks: number,
  groupSize: number,
  count: number,
  scales: Float32Array,
  biases: Float32Array,
): void {
  const groupsOfRow = scales.length / count;
  const scaleBits = new Uint32Array(scales.slice().buffer);
  const biasBits = new Uint32Array(biases.slice().buffer);
  for (let row = 0; row < count; row++) {
    for (let block = 0; block < blocks; block++) {
      const at = (Math.floor(row / blockRows) * blocks + block) * scaleWords * blockRows;
      for (let half = 0; half < groups; half++) {
        const group = Math.floor((block * blockColumns + (half * blockColumns) / 2) / groupSize);
        if (group >= groupsOfRow) continue;
        const from = row * groupsOfRow + group;
        const to = at + half * (scaleWords / groups) * blockRows + (row % blockRows);
        if (kind === 4) {
          out[to] = f16FromF32(scales[from]!) | (f16FromF32(biases[from]!) << 16);
        } else {
          out[to] = scaleBits[from]!;
          out[to + blockRows] = biasBits[from]!;
        }
      }
    }
  }
}
