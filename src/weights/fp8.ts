import type { Fp8Blocks } from "../checkpoint/config-quantization.ts";
import type { StoredTensor } from "../checkpoint/tensors.ts";
import { CheckpointError } from "../errors.ts";
import {
  checkRows,
  checkShape,
  floatType,
  presentTensor,
  type TakeTensor,
  type TensorOwner,
} from "./checkpoint-tensor.ts";
import { bytesOf, floatBytes, widen } from "./floats.ts";
import type { MatrixRole } from "./roles.ts";
import type { DenseMatrix } from "./weights.ts";

/** The value of each e4m3 byte: sign, 4 bits of exponent around 7, 3 bits of fraction, no infinities. */
const e4m3Values: Float32Array = Float32Array.from({ length: 256 }, (_, byte) => {
  const sign = byte < 128 ? 1 : -1;
  const exponent = (byte >> 3) & 15;
  const fraction = byte & 7;
  if ((byte & 127) === 127) return Number.NaN;
  return sign * (exponent === 0 ? fraction * 2 ** -9 : (8 + fraction) * 2 ** (exponent - 10));
});

/**
 * A matrix of e4m3 values in blocks that share a scale, as f32: value = f32(e4m3 · scale). The scales
 * are `<path>.weight_scale_inv`, [rows / block rows, cols / block cols], both rounded up.
 *
 * @throws CheckpointError where the config names no blocks, or the scales are missing or of another shape
 */
export function openFp8(
  checkpoint: TensorOwner,
  role: MatrixRole,
  weight: StoredTensor,
  take: TakeTensor,
): DenseMatrix {
  const blocks = checkpoint.config.fp8 ?? null;
  if (blocks === null) {
    const detail = `tensor ${weight.name} is fp8, but config.json has no quant_method fp8`;
    throw new CheckpointError(weight.file, detail);
  }
  const { rows, cols } = role;
  const scales = presentTensor(checkpoint, `${role.path}.weight_scale_inv`, take);
  const scaleType = floatType(scales);
  const scaleCols = Math.ceil(cols / blocks.cols);
  checkShape(weight, [rows, cols]);
  checkShape(scales, [Math.ceil(rows / blocks.rows), scaleCols]);
  const scaleRowBytes = scaleCols * floatBytes[scaleType];
  return {
    kind: "dense",
    rows,
    cols,
    dtype: "f32",
    async read(firstRow, rowCount) {
      checkRows(role, firstRow, rowCount);
      const firstBlock = Math.floor(firstRow / blocks.rows);
      const endBlock = Math.ceil((firstRow + rowCount) / blocks.rows);
      const [bytes, scaleBytes] = await Promise.all([
        weight.read(firstRow * cols, rowCount * cols),
        scales.read(firstBlock * scaleRowBytes, (endBlock - firstBlock) * scaleRowBytes),
      ]);
      const first = firstRow - firstBlock * blocks.rows;
      return bytesOf(scaledRows(bytes, widen(scaleBytes, scaleType), cols, blocks, first));
    },
  };
}

/** Rows of `cols` values; the first is row `first` of the first row of blocks. */
function scaledRows(
  bytes: Uint8Array,
  scales: Float32Array,
  cols: number,
  blocks: Fp8Blocks,
  first: number,
): Float32Array {
  const values = new Float32Array(bytes.length);
  const scaleCols = Math.ceil(cols / blocks.cols);
  for (let start = 0, row = first; start < bytes.length; start += cols, row++) {
    const scaleRow = Math.floor(row / blocks.rows) * scaleCols;
    for (let block = 0; block < scaleCols; block++) {
      const scale = scales[scaleRow + block]!;
      const end = start + Math.min((block + 1) * blocks.cols, cols);
      for (let i = start + block * blocks.cols; i < end; i++) {
        values[i] = e4m3Values[bytes[i]!]! * scale;
      }
    }
  }
  return values;
}
