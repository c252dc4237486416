import type { ByteSource } from "../../checkpoint/source.ts";
import { CheckpointError, DeltafoldError, messageOf } from "../../errors.ts";
import { type GgufType, ggufTypes } from "./blocks.ts";

/** A tensor as the header describes it. */
export interface GgufTensor {
  readonly name: string;
  /** Rows first and columns last, the reverse of the file's order. */
  readonly shape: readonly number[];
  /** Null for a type that is not read. */
  readonly type: GgufType | null;
  /** As ggml calls it: `Q4_K`. */
  readonly typeName: string;
  /** From the start of the file, in bytes. */
  readonly offset: number;
}

export interface GgufHeader {
  readonly file: string;
  readonly metadata: ReadonlyMap<string, unknown>;
  readonly tensors: ReadonlyMap<string, GgufTensor>;
}

/** Metadata and tensor descriptions; a vocabulary of 250,000 tokens takes 10 MB. */
const headerBytesMax = 32 * 2 ** 20;
/** What the parser may ask for beyond a file's end, as it reads ahead. */
const readAheadBytes = 4 * 2 ** 20;
const tensorsMax = 100_000;
const alignmentMax = 65_536;

/**
 * Reads and checks the header of a GGUF file; no tensor is read.
 *
 * @throws CheckpointError for a file that is no GGUF of version 2 or 3, cut off, in parts, or at odds
 *   with itself
 */
export async function readGgufHeader(source: ByteSource): Promise<GgufHeader> {
  const { parsed, typeNames } = await parse(source);
  const { metadata, tensorInfos, tensorDataOffset, tensorInfoByteRange } = parsed;
  const fail = (detail: string): never => {
    throw new CheckpointError(source.name, detail);
  };
  const [, headerEnd] = tensorInfoByteRange;
  if (headerEnd > source.size)
    fail(`its header ends at byte ${headerEnd} of ${source.size}: cut off`);
  const fields = new Map<string, unknown>(Object.entries(metadata));
  // The parser adds three of its own.
  if (fields.size !== Number(metadata.kv_count) + 3) fail("has a metadata key twice");
  const parts = Number(fields.get("split.count") ?? 1);
  if (parts > 1) fail(`is one of ${parts} parts; join them with llama-gguf-split --merge`);
  const alignment = Number(fields.get("general.alignment") ?? 32);
  if (alignment > alignmentMax || !Number.isInteger(Math.log2(alignment))) {
    fail(`general.alignment must be a power of two up to ${alignmentMax}, found ${alignment}`);
  }
  const dataStart = Number(tensorDataOffset);
  const tensors = new Map<string, GgufTensor>();
  for (const { name, shape, dtype, offset } of tensorInfos) {
    if (tensors.has(name)) fail(`has the tensor ${name} twice`);
    const place = dataStart + Number(offset);
    if (Number(offset) % alignment !== 0)
      fail(`tensor ${name} is not aligned to ${alignment} bytes`);
    tensors.set(name, {
      name,
      shape: shape.map(Number).reverse(),
      type: ggufTypes.get(dtype) ?? null,
      typeName: typeNames[dtype] ?? String(dtype),
      offset: place,
    });
  }
  return { file: source.name, metadata: fields, tensors };
}

/** The parser reads by HTTP ranges; it gets the file's bytes by them. */
async function parse(source: ByteSource) {
  const { gguf, GGMLQuantizationType } = await import("@huggingface/gguf");
  const prefix = await source.read(0, Math.min(24, source.size));
  checkPrefix(source.name, prefix);
  try {
    const parsed = await gguf("https://gguf.invalid", { fetch: rangeFetch(source) });
    const typeNames: Readonly<Record<number, string>> = GGMLQuantizationType;
    return { parsed, typeNames };
  } catch (cause) {
    if (cause instanceof DeltafoldError) throw cause;
    const detail = messageOf(cause);
    throw new CheckpointError(source.name, `is no GGUF file that can be read: ${detail}`, cause);
  }
}

/** What the parser lets pass, or takes at its word before it has seen the file. */
function checkPrefix(file: string, prefix: Uint8Array): void {
  const view = new DataView(prefix.buffer, prefix.byteOffset, prefix.byteLength);
  if (prefix.length < 24 || view.getUint32(0, true) !== 0x46554747) {
    throw new CheckpointError(file, "is no GGUF file: it does not start with GGUF and its counts");
  }
  const version = view.getUint32(4, true);
  if (version !== 2 && version !== 3) {
    throw new CheckpointError(
      file,
      `is GGUF of version ${version}; 2 and 3 are read, little-endian`,
    );
  }
  const tensors = view.getBigUint64(8, true);
  if (tensors > BigInt(tensorsMax)) {
    throw new CheckpointError(file, `names ${tensors} tensors, at most ${tensorsMax} are read`);
  }
}

function rangeFetch(source: ByteSource): typeof fetch {
  return async (_, init) => {
    const range = new Headers(init?.headers).get("range") ?? "";
    const [start = 0, last = 0] = range.replace("bytes=", "").split("-").map(Number);
    if (start >= Math.min(source.size + readAheadBytes, headerBytesMax)) {
      const detail = `its header does not end within ${Math.min(source.size, headerBytesMax)} bytes`;
      throw new CheckpointError(source.name, detail);
    }
    const end = Math.min(last + 1, source.size);
    const bytes = start < end ? await source.read(start, end - start) : new Uint8Array(0);
    return new Response(Uint8Array.from(bytes));
  };
}
