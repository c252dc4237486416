/** Writes GGUF files (version 3, https://github.com/ggml-org/ggml/blob/master/docs/gguf.md). */
import { closeSync, openSync, writeSync } from "node:fs";

/** Metadata values by what GGUF calls their types. */
export type GgufValue =
  | { readonly u32: number }
  | { readonly f32: number }
  | { readonly string: string }
  | { readonly i32s: readonly number[] }
  | { readonly strings: readonly string[] };

/** Matrices are Q4_0, vectors and the convolution's taps f32. */
export interface GgufTensor {
  readonly name: string;
  /** Columns first. */
  readonly dims: readonly number[];
  readonly type: "f32" | "q4_0";
}

const alignment = 32;
const typeIds = { f32: 0, q4_0: 2 } as const;
const valueIds = { u32: 4, i32: 5, f32: 6, string: 8, array: 9 } as const;

const rounded = (bytes: number): number => Math.ceil(bytes / alignment) * alignment;

const bytesOf = ({ dims, type }: GgufTensor): number => {
  const values = dims.reduce((product, dim) => product * dim, 1);
  return type === "f32" ? 4 * values : (values / 32) * 18;
};

const u32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
};
const u64 = (value: number): Buffer => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
};
const f32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeFloatLE(value);
  return bytes;
};
const string = (value: string): Buffer => {
  const bytes = Buffer.from(value);
  return Buffer.concat([u64(bytes.length), bytes]);
};

function encoded(value: GgufValue): Buffer {
  if ("u32" in value) return Buffer.concat([u32(valueIds.u32), u32(value.u32)]);
  if ("f32" in value) return Buffer.concat([u32(valueIds.f32), f32(value.f32)]);
  if ("string" in value) return Buffer.concat([u32(valueIds.string), string(value.string)]);
  const [type, items] =
    "i32s" in value
      ? [valueIds.i32, value.i32s.map((item) => u32(item))]
      : [valueIds.string, value.strings.map(string)];
  return Buffer.concat([u32(valueIds.array), u32(type), u64(items.length), ...items]);
}

/**
 * @param fill a tensor's bytes from `offset` on, in the form of its type
 */
export function writeGguf(
  path: string,
  metadata: ReadonlyMap<string, GgufValue>,
  tensors: readonly GgufTensor[],
  fill: (tensor: GgufTensor, bytes: Buffer) => void,
): void {
  const infos: Buffer[] = [];
  let offset = 0;
  for (const tensor of tensors) {
    const { name, dims, type } = tensor;
    infos.push(string(name), u32(dims.length), ...dims.map(u64), u32(typeIds[type]), u64(offset));
    offset += rounded(bytesOf(tensor));
  }
  const header = Buffer.concat([
    Buffer.from("GGUF"),
    u32(3),
    u64(tensors.length),
    u64(metadata.size),
    ...[...metadata].flatMap(([key, value]) => [string(key), encoded(value)]),
    ...infos,
  ]);
  const file = openSync(path, "w");
  writeSync(file, Buffer.concat([header, Buffer.alloc(rounded(header.length) - header.length)]));
  for (const tensor of tensors) {
    const bytes = Buffer.alloc(rounded(bytesOf(tensor)));
    fill(tensor, bytes.subarray(0, bytesOf(tensor)));
    writeSync(file, bytes);
  }
  closeSync(file);
}
