import type { ByteSource } from "../../checkpoint/source.ts";
import { CheckpointError } from "../../errors.ts";
import type { StoredPlace } from "./head-order.ts";
import type { GgufHeader } from "./open.ts";

/** Reads rows of a tensor as f32. */
export type ReadRows = (firstRow: number, rowCount: number) => Promise<Float32Array>;

/** A tensor as rows of columns, and where they lie. */
export interface GgufRows {
  readonly name: string;
  /** As the file must have it, rows first. */
  readonly shape: readonly number[];
  readonly cols: number;
  readonly rowOrder: StoredPlace | null;
  readonly colOrder: StoredPlace | null;
}

/** @throws CheckpointError where the tensor is missing, of another shape, or of a type that is not read */
export function openRows(source: ByteSource, header: GgufHeader, rows: GgufRows): ReadRows {
  const tensor = header.tensors.get(rows.name);
  const fail = (detail: string): never => {
    throw new CheckpointError(source.name, detail);
  };
  if (tensor === undefined) return fail(`has no tensor ${rows.name}`);
  const { type, shape, offset } = tensor;
  if (type === null) return fail(`tensor ${rows.name}: type ${tensor.typeName} is not read`);
  if (shape.length !== rows.shape.length || shape.some((size, i) => size !== rows.shape[i])) {
    const wanted = rows.shape.join(", ");
    return fail(`tensor ${rows.name}: shape [${shape.join(", ")}], expected [${wanted}]`);
  }
  const { cols, rowOrder, colOrder } = rows;
  if (cols % type.values !== 0) {
    return fail(`tensor ${rows.name}: ${type.name} needs ${type.values} columns, it has ${cols}`);
  }
  const rowBytes = (cols / type.values) * type.bytes;
  const bytes = (shape.reduce((product, size) => product * size, 1) / cols) * rowBytes;
  if (offset + bytes > source.size) {
    return fail(`tensor ${rows.name} ends at byte ${offset + bytes} of ${source.size}: cut off`);
  }
  return async (firstRow, rowCount) => {
    const values = new Float32Array(rowCount * cols);
    for (let row = 0; row < rowCount; ) {
      const stored = rowOrder?.(firstRow + row) ?? firstRow + row;
      let count = 1;
      if (rowOrder === null) count = rowCount;
      else
        while (row + count < rowCount && rowOrder(firstRow + row + count) === stored + count)
          count++;
      const blocks = await source.read(offset + stored * rowBytes, count * rowBytes);
      type.decode(blocks, values.subarray(row * cols, (row + count) * cols));
      row += count;
    }
    return colOrder === null ? values : ordered(values, cols, colOrder);
  };
}

/** Rows whose columns are put where the model has them. */
function ordered(values: Float32Array, cols: number, colOrder: StoredPlace): Float32Array {
  const places = Uint32Array.from({ length: cols }, (_, col) => colOrder(col));
  const out = new Float32Array(values.length);
  for (let start = 0; start < values.length; start += cols) {
    for (let col = 0; col < cols; col++) out[start + col] = values[start + places[col]!]!;
  }
  return out;
}
