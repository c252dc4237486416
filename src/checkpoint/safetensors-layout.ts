import { dtypeBits } from "./safetensors-tensor.ts";

/** A tensor that is going to be written. */
export interface TensorSpec {
  readonly name: string;
  readonly dtype: "BF16" | "F16" | "F32" | "U32";
  readonly shape: readonly number[];
}

export interface SafetensorsLayout {
  /** The file's first bytes: length field and JSON, a multiple of 8 long. */
  readonly header: Uint8Array;
  /** Where each tensor's bytes begin in the file, by name. */
  readonly offsets: ReadonlyMap<string, number>;
  /** Size of the whole file. */
  readonly fileBytes: number;
}

/** Bytes of a tensor's values. */
export function specBytes({ dtype, shape }: TensorSpec): number {
  return (shape.reduce((product, size) => product * size, 1) * (dtypeBits.get(dtype) ?? 0)) / 8;
}

/**
 * Lays tensors out in one file: wide types first, so that every value is aligned, then by name.
 *
 * @param specs names are unique and none is `__metadata__`
 */
export function layoutSafetensors(specs: readonly TensorSpec[]): SafetensorsLayout {
  const width = (spec: TensorSpec) => dtypeBits.get(spec.dtype) ?? 0;
  const ordered = [...specs].sort((a, b) => width(b) - width(a) || (a.name < b.name ? -1 : 1));
  const entries: [string, unknown][] = [["__metadata__", { format: "mlx" }]];
  const starts: [string, number][] = [];
  let end = 0;
  for (const spec of ordered) {
    const start = end;
    end += specBytes(spec);
    starts.push([spec.name, start]);
    const { dtype, shape } = spec;
    entries.push([spec.name, { dtype, shape, data_offsets: [start, end] }]);
  }
  const json = new TextEncoder().encode(JSON.stringify(Object.fromEntries(entries)));
  const jsonBytes = Math.ceil(json.length / 8) * 8;
  const header = new Uint8Array(8 + jsonBytes).fill(0x20);
  new DataView(header.buffer).setBigUint64(0, BigInt(jsonBytes), true);
  header.set(json, 8);
  return {
    header,
    offsets: new Map(starts.map(([name, start]) => [name, header.length + start])),
    fileBytes: header.length + end,
  };
}
