import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import { type BlockStore, blockBytes } from "./blocks.ts";
import type { HttpFile } from "./http.ts";

/** The package's folder in the origin's private file system. */
const folderName = "deltafold";
const digestBytes = 32;

/** The cache of this origin; null where the browser has none, or denies it. */
export async function openCache(): Promise<FileSystemDirectoryHandle | null> {
  try {
    const root = await navigator.storage.getDirectory();
    return await root.getDirectoryHandle(folderName, { create: true });
  } catch {
    return null;
  }
}

/** Deletes every file that was kept for this origin. */
export async function clearCache(): Promise<void> {
  const cache = await openCache();
  if (!cache) return;
  for await (const name of cache.keys()) await cache.removeEntry(name, { recursive: true });
}

/**
 * The store of one version of a file: cache/URL/version/block, where URL and version are hashes. Other
 * versions of it are deleted.
 */
export async function openStore(
  cache: FileSystemDirectoryHandle,
  { url, size, version }: HttpFile,
): Promise<BlockStore | null> {
  try {
    const file = await cache.getDirectoryHandle(nameOf(url), { create: true });
    const wanted = nameOf(`${version}\n${size}\n${blockBytes}`);
    for await (const name of file.keys()) {
      if (name !== wanted) await file.removeEntry(name, { recursive: true });
    }
    return new DirectoryStore(await file.getDirectoryHandle(wanted, { create: true }));
  } catch {
    return null;
  }
}

const nameOf = (text: string): string => bytesToHex(sha256(utf8ToBytes(text))).slice(0, 40);

const digestOf = async (bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> =>
  new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));

/** A file a block: its bytes, then their SHA-256. */
class DirectoryStore implements BlockStore {
  readonly #directory: FileSystemDirectoryHandle;
  /** Once the origin's quota is used up, no further block is tried. */
  #full = false;

  constructor(directory: FileSystemDirectoryHandle) {
    this.#directory = directory;
  }

  async get(index: number, length: number): Promise<Uint8Array<ArrayBuffer> | null> {
    try {
      const file = await (await this.#directory.getFileHandle(String(index))).getFile();
      if (file.size !== length + digestBytes) return null;
      const all = new Uint8Array(await file.arrayBuffer());
      const bytes = all.subarray(0, length);
      const digest = await digestOf(bytes);
      return digest.every((byte, at) => byte === all[length + at]) ? bytes : null;
    } catch {
      return null;
    }
  }

  async put(index: number, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    if (this.#full) return;
    try {
      const handle = await this.#directory.getFileHandle(String(index), { create: true });
      // From here to `close` there is an empty file, or the one that was there before.
      const file = await handle.createWritable();
      try {
        await file.write(bytes);
        await file.write(await digestOf(bytes));
        await file.close();
      } catch (cause) {
        // Else what was written takes room until the page goes.
        await file.abort().catch(() => {});
        throw cause;
      }
    } catch (cause) {
      if (cause instanceof Error && cause.name === "QuotaExceededError") this.#full = true;
    }
  }
}
