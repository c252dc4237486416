import type { TensorSpec } from "../checkpoint/safetensors-layout.ts";
import type { StoredTensor } from "../checkpoint/tensors.ts";
import { type AffineFormat, dequantizeRows } from "./affine.ts";
import { floatType } from "./checkpoint-tensor.ts";
import { bytesOf, f16FromF32, floatBytes, narrowToBf16, widen } from "./floats.ts";
import { pipeline } from "./pipeline.ts";
import { quantizeRows } from "./quantized-matrix.ts";
import type { AffineMatrix, DenseMatrix, FloatType, Matrix } from "./weights.ts";

/** Source bytes that are read at a time. */
const blockBytes = 2 ** 19;

/** Receives bytes of the job's `tensor`-th tensor, at `offset` within it. */
type EmitBytes = (tensor: number, offset: number, bytes: Uint8Array) => Promise<void>;

/** Tensors of the output that are made from one pass over some of the input. */
export interface ConvertJob {
  /** Null for a tensor that is never quantised. */
  readonly matrix: JobMatrix | null;
  readonly tensors: readonly TensorSpec[];
  run(emit: EmitBytes): Promise<void>;
}

/** A matrix that could be quantised, and what becomes of it. */
export interface JobMatrix {
  /** Its module's path as the output spells it. */
  readonly module: string;
  readonly rows: number;
  readonly cols: number;
  /** How the output stores it; null: as floats. */
  readonly format: AffineFormat | null;
  /**
   * - `quantized`: from floats, or anew from another format
   * - `same`: it had the wanted format; codes and scales are copied
   * - `asked`: it stays as the source stores it, as the recipe says
   * - `indivisible`: it stays so, because the group size does not divide its columns
   */
  readonly fate: "quantized" | "same" | "asked" | "indivisible";
}

/**
 * What becomes of one matrix.
 *
 * @param format null: it stays as it is
 * @param file for error messages
 */
export function matrixJob(
  module: string,
  file: string,
  matrix: Matrix,
  format: AffineFormat | null,
): ConvertJob {
  const isSame =
    matrix.kind === "affine" &&
    matrix.bits === format?.bits &&
    matrix.groupSize === format.groupSize;
  if (isSame) return storedJob(module, matrix, "same");
  if (format === null) return storedJob(module, matrix, "asked");
  if (matrix.cols % format.groupSize !== 0) return storedJob(module, matrix, "indivisible");
  return quantizeJob(module, file, denseOf(matrix), format);
}

function storedJob(module: string, matrix: Matrix, fate: JobMatrix["fate"]): ConvertJob {
  return matrix.kind === "affine" ? copyJob(module, matrix, fate) : floatsJob(module, matrix, fate);
}

/** `module.weight`, `.scales` and `.biases` from a matrix, block of rows by block of rows. */
function quantizeJob(
  module: string,
  file: string,
  matrix: DenseMatrix,
  format: AffineFormat,
): ConvertJob {
  const { rows, cols } = matrix;
  const groups = cols / format.groupSize;
  const codeBytes = (cols * format.bits) / 8;
  return {
    matrix: { module, rows, cols, format, fate: "quantized" },
    tensors: affineSpecs(module, rows, cols, format, "bf16"),
    run: (emit) =>
      pipeline([...rowBlocks(matrix, cols * floatBytes[matrix.dtype])], {
        read: ([row, count]) => matrix.read(row, count),
        make: ([row], bytes) => quantizeRows(bytes, matrix, row, format, { file, name: module }),
        write: ([row], { codes, scales, biases }) =>
          Promise.all([
            emit(0, row * codeBytes, codes),
            emit(1, row * groups * 2, bytesOf(scales)),
            emit(2, row * groups * 2, bytesOf(biases)),
          ]),
      }),
  };
}

/** A quantised matrix as it is. */
function copyJob(module: string, matrix: AffineMatrix, fate: JobMatrix["fate"]): ConvertJob {
  const { rows, cols, bits, groupSize, scaleType } = matrix;
  const codeBytes = (cols * bits) / 8;
  const scaleBytes = (cols / groupSize) * floatBytes[scaleType];
  return {
    matrix: { module, rows, cols, format: { bits, groupSize }, fate },
    tensors: affineSpecs(module, rows, cols, matrix, scaleType),
    async run(emit) {
      for (const [row, count] of rowBlocks(matrix, codeBytes)) {
        const { codes, scales, biases } = await matrix.read(row, count);
        await emit(0, row * codeBytes, codes);
        await emit(1, row * scaleBytes, narrowTo(scaleType, scales));
        await emit(2, row * scaleBytes, narrowTo(scaleType, biases));
      }
    },
  };
}

/** A matrix of floats as it is, but f32 as bf16. */
function floatsJob(module: string, matrix: DenseMatrix, fate: JobMatrix["fate"]): ConvertJob {
  const { rows, cols, dtype } = matrix;
  const type = dtype === "f32" ? "bf16" : dtype;
  const rowBytes = cols * floatBytes[type];
  return {
    matrix: { module, rows, cols, format: null, fate },
    tensors: [{ name: `${module}.weight`, dtype: dtypeNames[type], shape: [rows, cols] }],
    async run(emit) {
      for (const [row, count] of rowBlocks(matrix, cols * floatBytes[dtype])) {
        const bytes = await matrix.read(row, count);
        const own = dtype === "f32" ? bytesOf(narrowToBf16(widen(bytes, dtype))) : bytes;
        await emit(0, row * rowBytes, own);
      }
    },
  };
}

/** One tensor under another name and shape; f32 becomes bf16 unless `keepF32`. */
export function castJob(
  name: string,
  shape: readonly number[],
  tensor: StoredTensor,
  { keepF32 }: { readonly keepF32: boolean },
): ConvertJob {
  const type = floatType(tensor);
  const narrows = type === "f32" && !keepF32;
  return {
    matrix: null,
    tensors: [{ name, dtype: narrows ? "BF16" : dtypeNames[type], shape }],
    async run(emit) {
      for (let offset = 0; offset < tensor.bytes; offset += blockBytes) {
        const bytes = await tensor.read(offset, Math.min(blockBytes, tensor.bytes - offset));
        if (narrows) await emit(0, offset / 2, bytesOf(narrowToBf16(widen(bytes, type))));
        else await emit(0, offset, bytes);
      }
    },
  };
}

/** A small tensor from values that are ready to use. */
export function vectorJob(
  name: string,
  dtype: "bf16" | "f32",
  shape: readonly number[],
  read: () => Promise<Float32Array>,
): ConvertJob {
  return {
    matrix: null,
    tensors: [{ name, dtype: dtypeNames[dtype], shape }],
    async run(emit) {
      await emit(0, 0, narrowTo(dtype, await read()));
    },
  };
}

/** The values of a quantised matrix, to be quantised anew. */
function denseOf(matrix: Matrix): DenseMatrix {
  if (matrix.kind === "dense") return matrix;
  const { rows, cols } = matrix;
  return {
    kind: "dense",
    rows,
    cols,
    dtype: "f32",
    read: async (row, count) => bytesOf(dequantizeRows(await matrix.read(row, count), matrix)),
  };
}

/** First row and row count of each block that a job reads at once. */
function* rowBlocks({ rows }: Matrix, rowBytes: number): Generator<readonly [number, number]> {
  const blockRows = Math.max(1, Math.floor(blockBytes / rowBytes));
  for (let row = 0; row < rows; row += blockRows) yield [row, Math.min(blockRows, rows - row)];
}

function affineSpecs(
  module: string,
  rows: number,
  cols: number,
  { bits, groupSize }: AffineFormat,
  scaleType: FloatType,
): readonly TensorSpec[] {
  const scales = { dtype: dtypeNames[scaleType], shape: [rows, cols / groupSize] };
  return [
    { name: `${module}.weight`, dtype: "U32", shape: [rows, (cols * bits) / 32] },
    { name: `${module}.scales`, ...scales },
    { name: `${module}.biases`, ...scales },
  ];
}

function narrowTo(type: FloatType, values: Float32Array): Uint8Array {
  if (type === "f32") return bytesOf(values);
  return bytesOf(type === "bf16" ? narrowToBf16(values) : Uint16Array.from(values, f16FromF32));
}

const dtypeNames: Readonly<Record<FloatType, "BF16" | "F16" | "F32">> = {
  bf16: "BF16",
  f16: "F16",
  f32: "F32",
};
