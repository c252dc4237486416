import { widen } from "../../weights/floats.ts";
import { unpackCodes } from "../../weights/packing.ts";
import type { AffineMatrix, Matrix } from "../../weights/weights.ts";
import type { BufferSource } from "./device-memory.ts";

/** Columns of a step, and the lanes that share it (kernels/project.wgsl). */
const stepColumns = 1024;
const lanes = 32;
/** Bytes that are packed and uploaded at a time. */
const uploadBytes = 8 * 2 ** 20;

/** Rows [firstRow, firstRow + rows) of a matrix on the device. */
export interface MatrixPart {
  readonly firstRow: number;
  readonly rows: number;
  readonly codes: GPUBuffer;
  readonly scales: GPUBuffer;
}

export interface DeviceMatrix {
  readonly rows: number;
  readonly cols: number;
  readonly steps: number;
  /** Groups a row and columns a group; 1 and `cols` for floats. */
  readonly groups: number;
  readonly groupSize: number;
  /** Defines of the kernels that read it. */
  readonly defines: { readonly KIND: number; readonly CHUNKS: number; readonly VECTORS: number };
  readonly scaleBytes: number;
  /** One, or several where the binding limit demands it. */
  readonly parts: readonly MatrixPart[];
}

/** Bits a column takes on the device: codes of 2, 3, 4 → 4; 5, 6, 8 → 8; f16 widens. */
function kindOf(matrix: Matrix): 4 | 8 | 16 | 32 {
  if (matrix.kind === "affine") return matrix.bits <= 4 ? 4 : 8;
  return matrix.dtype === "bf16" ? 16 : 32;
}

/** How a matrix lies on the device. */
interface MatrixLayout {
  readonly kind: 4 | 8 | 16 | 32;
  readonly steps: number;
  readonly groups: number;
  readonly scaleBytes: number;
  /** Of codes; scales are in a buffer of their own. */
  readonly rowBytes: number;
}

function layoutOf(matrix: Matrix): MatrixLayout {
  const kind = kindOf(matrix);
  const steps = Math.ceil(matrix.cols / stepColumns);
  const affine = matrix.kind === "affine";
  return {
    kind,
    steps,
    groups: affine ? matrix.cols / matrix.groupSize : 1,
    scaleBytes: affine && matrix.scaleType !== "bf16" ? 8 : 4,
    rowBytes: (steps * stepColumns * kind) / 8,
  };
}

/** Rows that one buffer holds of a matrix where a binding has at most `bindingBytesMax`. */
function partRowsMax(matrix: Matrix, bindingBytesMax: number): number {
  return Math.max(1, Math.floor(bindingBytesMax / layoutOf(matrix).rowBytes));
}

/** In how many parts a matrix is uploaded. */
export const partsOf = (matrix: Matrix, bindingBytesMax: number): number =>
  Math.ceil(matrix.rows / partRowsMax(matrix, bindingBytesMax));

/** Fills a synthetic matrix on the device. */
export type Synthesise = (
  codes: GPUBuffer,
  scales: GPUBuffer,
  matrix: AffineMatrix,
  codeBytes: number,
  scaleBytes: number,
  /** Pairs of bf16 or f16 a word, or sixteen f32 scales and then their biases. */
  scaleForm: "bf16" | "f16" | "f32Split",
) => Promise<void>;

/** Takes the buffers of a matrix, in the layout of kernels/project.wgsl. */
export async function placeMatrix(
  memory: BufferSource,
  label: string,
  matrix: Matrix,
): Promise<DeviceMatrix> {
  const { kind, steps, groups, scaleBytes, rowBytes } = layoutOf(matrix);
  const affine = matrix.kind === "affine";
  const partRows = partRowsMax(matrix, memory.bufferBytesMax);
  const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST;
  const parts: MatrixPart[] = [];
  for (let firstRow = 0; firstRow < matrix.rows; firstRow += partRows) {
    const rows = Math.min(partRows, matrix.rows - firstRow);
    const codes = await memory.create(label, rows * rowBytes, usage);
    const scales = await memory.create(
      `${label} scales`,
      affine ? rows * groups * scaleBytes : 16,
      usage,
    );
    parts.push({ firstRow, rows, codes, scales });
  }
  const chunks = kind / 4;
  return {
    rows: matrix.rows,
    cols: matrix.cols,
    steps,
    groups,
    groupSize: affine ? matrix.groupSize : matrix.cols,
    defines: { KIND: kind, CHUNKS: chunks, VECTORS: 8 / chunks },
    scaleBytes,
    parts,
  };
}

/** Fills a placed matrix, a few rows at a time. */
export async function fillMatrix(
  device: GPUDevice,
  matrix: Matrix,
  { parts }: DeviceMatrix,
  synthesise: Synthesise | null,
): Promise<void> {
  const { kind, steps, groups, scaleBytes, rowBytes } = layoutOf(matrix);
  for (const { firstRow, rows, codes, scales } of parts) {
    if (matrix.kind === "affine" && matrix.synthetic && synthesise) {
      const bytes = rows * groups * scaleBytes;
      await synthesise(codes, scales, matrix, rows * rowBytes, bytes, "bf16");
      continue;
    }
    const count = Math.max(1, Math.floor(uploadBytes / rowBytes));
    for (let row = 0; row < rows; row += count) {
      const these = Math.min(count, rows - row);
      const packed = await packRows(matrix, kind, steps, firstRow + row, these, scaleBytes);
      device.queue.writeBuffer(codes, row * rowBytes, packed.codes);
      if (packed.scales) {
        device.queue.writeBuffer(scales, row * groups * scaleBytes, packed.scales);
      }
    }
  }
}

interface PackedRows {
  readonly codes: Uint32Array<ArrayBuffer>;
  readonly scales: Uint32Array<ArrayBuffer> | null;
}

async function packRows(
  matrix: Matrix,
  kind: 4 | 8 | 16 | 32,
  steps: number,
  firstRow: number,
  count: number,
  scaleBytes: number,
): Promise<PackedRows> {
  const { cols } = matrix;
  const words = new Uint32Array((count * steps * stepColumns * kind) / 32);
  let source: ArrayLike<number>;
  let scales: Uint32Array<ArrayBuffer> | null = null;
  if (matrix.kind === "affine") {
    const rows = await matrix.read(firstRow, count);
    source = unpackCodes(rows.codes, matrix.bits);
    scales = packScales(rows.scales, rows.biases, scaleBytes);
  } else {
    const bytes = await matrix.read(firstRow, count);
    if (kind === 16) source = new Uint16Array(bytes.slice().buffer);
    else source = new Uint32Array(widen(bytes, matrix.dtype).slice().buffer);
  }
  const chunks = kind / 4;
  const vectors = 8 / chunks;
  for (let row = 0; row < count; row++) {
    for (let column = 0; column < cols; column++) {
      const step = Math.floor(column / stepColumns);
      const lane = Math.floor((column % stepColumns) / lanes);
      const j = Math.floor((column % lanes) / 4);
      const chunk = Math.floor(j / vectors);
      const word = (((row * steps + step) * chunks + chunk) * lanes + lane) * 4 + (column % 4);
      const value = source[row * cols + column]!;
      words[word] = words[word]! | (kind === 32 ? value : value << ((j % vectors) * kind));
    }
  }
  return { codes: words, scales };
}

/** One word a group, bias over scale as bf16; or two words of f32. */
function packScales(
  scales: Float32Array,
  biases: Float32Array,
  scaleBytes: number,
): Uint32Array<ArrayBuffer> {
  const s = new Uint32Array(scales.slice().buffer);
  const b = new Uint32Array(biases.slice().buffer);
  const out = new Uint32Array((s.length * scaleBytes) / 4);
  for (let at = 0; at < s.length; at++) {
    if (scaleBytes === 4) out[at] = (s[at]! >>> 16) | (b[at]! & 0xffff0000);
    else {
      out[2 * at] = s[at]!;
      out[2 * at + 1] = b[at]!;
    }
  }
  return out;
}
