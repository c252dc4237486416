import type { StoredTensor } from "../checkpoint/tensors.ts";
import { CheckpointError } from "../errors.ts";
import { type AffineFormat, affineFormat } from "./affine.ts";
import {
  checkRows,
  checkShape,
  floatType,
  presentTensor,
  type TakeTensor,
  type TensorOwner,
} from "./checkpoint-tensor.ts";
import { floatBytes, widen } from "./floats.ts";
import { openFp8 } from "./fp8.ts";
import type { MatrixRole } from "./roles.ts";
import type { AffineMatrix, DenseMatrix, FloatType, Matrix } from "./weights.ts";

/** Checks a matrix's tensors. It is quantised if and only if `<path>.scales` exists. */
export function openMatrix(checkpoint: TensorOwner, role: MatrixRole, take: TakeTensor): Matrix {
  const weight = presentTensor(checkpoint, `${role.path}.weight`, take);
  const scales = take(`${role.path}.scales`);
  if (scales !== undefined) return openAffine(checkpoint, role, weight, scales, take);
  if (weight.dtype === "U32") {
    throw new CheckpointError(weight.file, `tensor ${weight.name} is packed, but has no scales`);
  }
  if (weight.dtype === "F8_E4M3") return openFp8(checkpoint, role, weight, take);
  const dtype = floatType(weight);
  checkShape(weight, [role.rows, role.cols]);
  return denseMatrix(role, dtype, weight);
}

/** A matrix over a tensor whose shape and type are checked. */
export function denseMatrix(role: MatrixRole, dtype: FloatType, tensor: StoredTensor): DenseMatrix {
  const { rows, cols } = role;
  const rowBytes = cols * floatBytes[dtype];
  return {
    kind: "dense",
    rows,
    cols,
    dtype,
    async read(firstRow, rowCount) {
      checkRows(role, firstRow, rowCount);
      return tensor.read(firstRow * rowBytes, rowCount * rowBytes);
    },
  };
}

function openAffine(
  checkpoint: TensorOwner,
  role: MatrixRole,
  weight: StoredTensor,
  scales: StoredTensor,
  take: TakeTensor,
): AffineMatrix {
  const { rows, cols } = role;
  if (scales.dtype === "U8") {
    throw new CheckpointError(
      scales.file,
      `tensor ${scales.name} is U8 (mxfp4, mxfp8 or nvfp4); only affine quantisation is read`,
    );
  }
  const biases = presentTensor(checkpoint, `${role.path}.biases`, take);
  const format = moduleFormat(checkpoint, role);
  if (weight.dtype !== "U32") {
    throw new CheckpointError(
      weight.file,
      `tensor ${weight.name}: dtype ${weight.dtype}, expected U32 as it has scales`,
    );
  }
  checkShape(weight, [rows, (cols * format.bits) / 32]);
  const groups = cols / format.groupSize;
  checkShape(scales, [rows, groups]);
  checkShape(biases, [rows, groups]);
  const scaleType = floatType(scales);
  const biasType = floatType(biases);
  const codeBytes = (cols * format.bits) / 8;
  return {
    kind: "affine",
    rows,
    cols,
    ...format,
    scaleType: scaleType === biasType ? scaleType : "f32",
    async read(firstRow, rowCount) {
      checkRows(role, firstRow, rowCount);
      const rowsOf = (tensor: StoredTensor, rowBytes: number) =>
        tensor.read(firstRow * rowBytes, rowCount * rowBytes);
      const [codes, scaleBytes, biasBytes] = await Promise.all([
        rowsOf(weight, codeBytes),
        rowsOf(scales, groups * floatBytes[scaleType]),
        rowsOf(biases, groups * floatBytes[biasType]),
      ]);
      return { codes, scales: widen(scaleBytes, scaleType), biases: widen(biasBytes, biasType) };
    },
  };
}

/** The module's width and group, which must divide its columns. */
function moduleFormat(checkpoint: TensorOwner, role: MatrixRole): AffineFormat {
  const { quantization } = checkpoint.config;
  const file = `${checkpoint.folder.name}/config.json`;
  if (quantization === null) {
    throw new CheckpointError(file, `has no quantization, but ${role.path} has scales`);
  }
  const { bits, groupSize } = quantization.overrides.get(role.path) ?? quantization;
  const format = affineFormat(bits, groupSize);
  if (format === null) {
    throw new CheckpointError(
      file,
      `quantization of ${role.path}: ${bits} bits in groups of ${groupSize} are not read`,
    );
  }
  if (role.cols % groupSize !== 0) {
    throw new CheckpointError(
      file,
      `quantization.group_size: ${groupSize} does not divide the ${role.cols} columns of ` +
        role.path,
    );
  }
  return format;
}
