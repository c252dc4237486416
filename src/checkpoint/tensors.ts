import { CheckpointError } from "../errors.ts";
import { shown } from "../json.ts";
import { asFields, parseJsonObject } from "./json.ts";
import { readSafetensorsHeader } from "./safetensors.ts";
import type { TensorEntry } from "./safetensors-tensor.ts";
import { type ByteSource, checkRelativePath, type Folder } from "./source.ts";

/** A tensor of a checkpoint, to be read by range. */
export interface StoredTensor {
  /** As the file spells it, prefix included. */
  readonly name: string;
  /** The file it lies in, for error messages. */
  readonly file: string;
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly bytes: number;
  /** `length` bytes from `offset` within the tensor. @throws CheckpointError */
  read(offset: number, length: number): Promise<Uint8Array>;
}

export interface TensorFiles {
  readonly tensors: ReadonlyMap<string, StoredTensor>;
  /** Each file's header as it stands there and its size, in the order of the file names. */
  readonly headers: readonly { readonly raw: Uint8Array; readonly fileBytes: number }[];
  close(): Promise<void>;
}

export const indexFile = "model.safetensors.index.json";
export const singleFile = "model.safetensors";

/**
 * Opens a checkpoint's tensors: the shards that the index names, or else the single file.
 *
 * The index and its shards must agree in both directions. A shard file that the index does not name
 * is never read.
 *
 * @throws CheckpointError naming the shard and the tensor at fault
 */
export async function openTensors(folder: Folder): Promise<TensorFiles> {
  if (await folder.has(indexFile)) return openShards(folder, await readIndex(folder));
  if (await folder.has(singleFile)) return openShards(folder, new Map([[singleFile, null]]));
  throw new CheckpointError(folder.name, `has neither ${indexFile} nor ${singleFile}`);
}

/** Each shard's path, and the tensors that it must hold (null: whatever it holds). */
type Shards = ReadonlyMap<string, ReadonlySet<string> | null>;

async function readIndex(folder: Folder): Promise<Shards> {
  const file = `${folder.name}/${indexFile}`;
  const weightMap = parseJsonObject(file, await folder.text(indexFile)).get("weight_map");
  const fields = asFields(weightMap);
  if (fields === null) {
    throw new CheckpointError(file, `weight_map must be an object, found ${shown(weightMap)}`);
  }
  const shards = new Map<string, Set<string>>();
  for (const [tensor, shard] of fields) {
    if (typeof shard !== "string") {
      throw new CheckpointError(file, `weight_map.${tensor} must be a file, found ${shown(shard)}`);
    }
    const names = shards.get(shard);
    if (names === undefined) {
      checkRelativePath(file, shard);
      shards.set(shard, new Set([tensor]));
    } else {
      names.add(tensor);
    }
  }
  for (const [shard, names] of shards) {
    if (!(await folder.has(shard))) {
      const [tensor] = names;
      throw new CheckpointError(file, `shard ${shard} is missing (it should hold ${tensor})`);
    }
  }
  return shards;
}

async function openShards(folder: Folder, shards: Shards): Promise<TensorFiles> {
  const sources: ByteSource[] = [];
  const close = async () => {
    await Promise.all(sources.map((source) => source.close()));
  };
  try {
    const tensors = new Map<string, StoredTensor>();
    const headers: { raw: Uint8Array; fileBytes: number }[] = [];
    for (const shard of [...shards.keys()].sort()) {
      const source = await folder.open(shard);
      sources.push(source);
      const header = await readSafetensorsHeader(source);
      headers.push({ raw: header.raw, fileBytes: source.size });
      const stored = header.tensors.map((entry) => storedTensor(source, entry));
      checkAgainstIndex(source.name, stored, shards.get(shard) ?? null);
      for (const tensor of stored) tensors.set(tensor.name, tensor);
    }
    return { tensors, headers, close };
  } catch (error) {
    await close();
    throw error;
  }
}

function checkAgainstIndex(
  file: string,
  stored: readonly StoredTensor[],
  wanted: ReadonlySet<string> | null,
): void {
  if (wanted === null) return;
  const missing = new Set(wanted);
  for (const { name } of stored) {
    if (!missing.delete(name)) {
      throw new CheckpointError(
        file,
        `holds tensor ${name}, which ${indexFile} does not place here`,
      );
    }
  }
  for (const name of missing) {
    throw new CheckpointError(file, `lacks tensor ${name}, which ${indexFile} places here`);
  }
}

function storedTensor(source: ByteSource, entry: TensorEntry): StoredTensor {
  const { name, dtype, shape, bytes } = entry;
  return {
    name,
    file: source.name,
    dtype,
    shape,
    bytes,
    read(offset, length) {
      if (offset < 0 || length < 0 || offset + length > bytes) {
        throw new CheckpointError(
          source.name,
          `tensor ${name} is ${bytes} bytes, ${offset} to ${offset + length} are wanted`,
        );
      }
      return source.read(entry.offset + offset, length);
    },
  };
}
