import type { TensorSpec } from "../checkpoint/safetensors-layout.ts";
import type { StoredTensor } from "../checkpoint/tensors.ts";
import { type AffineFormat, quantizeGroups } from "./affine.ts";
import { floatType } from "./checkpoint-tensor.ts";
import { bytesOf, floatBytes, narrowToBf16, widen } from "./floats.ts";
import { finiteRows } from "./quantized-matrix.ts";
import type { DenseMatrix, FloatType } from "./weights.ts";

/** Source bytes that are held at a time. */
const blockBytes = 4 * 2 ** 20;

/** Receives bytes of the job's `tensor`-th tensor, at `offset` within it. */
type EmitBytes = (tensor: number, offset: number, bytes: Uint8Array) => Promise<void>;

/** Tensors of the output that are made from one pass over some of the input. */
export interface ConvertJob {
  /** What becomes of a matrix that could be quantised; null for any other tensor. */
  readonly matrix: "quantized" | "kept" | null;
  readonly tensors: readonly TensorSpec[];
  run(emit: EmitBytes): Promise<void>;
}

/** `module.weight`, `.scales` and `.biases` from a matrix, block of rows by block of rows. */
export function quantizeJob(
  module: string,
  file: string,
  matrix: DenseMatrix,
  format: AffineFormat,
): ConvertJob {
  const { rows, cols } = matrix;
  const groups = cols / format.groupSize;
  const codeBytes = (cols * format.bits) / 8;
  const blockRows = Math.max(1, Math.floor(blockBytes / (cols * floatBytes[matrix.dtype])));
  return {
    matrix: "quantized",
    tensors: [
      { name: `${module}.weight`, dtype: "U32", shape: [rows, codeBytes / 4] },
      { name: `${module}.scales`, dtype: "BF16", shape: [rows, groups] },
      { name: `${module}.biases`, dtype: "BF16", shape: [rows, groups] },
    ],
    async run(emit) {
      for (let row = 0; row < rows; row += blockRows) {
        const count = Math.min(blockRows, rows - row);
        const values = await finiteRows(matrix, row, count, { file, name: module });
        const groupsOf = quantizeGroups(values, format);
        await emit(0, row * codeBytes, groupsOf.codes);
        await emit(1, row * groups * 2, bytesOf(groupsOf.scales));
        await emit(2, row * groups * 2, bytesOf(groupsOf.biases));
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

/** A small tensor of bf16 from values that are ready to use. */
export function vectorJob(
  name: string,
  shape: readonly number[],
  read: () => Promise<Float32Array>,
): ConvertJob {
  return {
    matrix: null,
    tensors: [{ name, dtype: "BF16", shape }],
    async run(emit) {
      await emit(0, 0, bytesOf(narrowToBf16(await read())));
    },
  };
}

const dtypeNames: Readonly<Record<FloatType, "BF16" | "F16" | "F32">> = {
  bf16: "BF16",
  f16: "F16",
  f32: "F32",
};
