import type { Stats } from "node:fs";
import { type FileHandle, open, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { CheckpointError } from "../errors.ts";
import {
  type ByteSource,
  checkRange,
  checkRelativePath,
  type Folder,
  sourceText,
} from "./source.ts";

/** Node reads at most this many bytes in one call. */
const readBytesMax = 2 ** 30;

/** What is asked of the file system about names; tests bring calls that fail. */
export interface FolderCalls {
  stat(path: string): Promise<Stats>;
  readdir(path: string): Promise<string[]>;
}

/**
 * A folder of the file system. Symbolic links are followed, as the hub's cache is made of them.
 *
 * @throws CheckpointError when `path` is missing, not a folder, or unreadable
 */
export async function openFolder(
  path: string,
  calls: FolderCalls = { stat, readdir },
): Promise<Folder> {
  const stats = await calls.stat(path).catch((cause) => fail(path, cause));
  if (!stats.isDirectory()) {
    const isGguf = path.toLowerCase().endsWith(".gguf");
    throw new CheckpointError(
      path,
      isGguf ? "is a GGUF file, from which deltafold convert makes a folder" : "is not a folder",
    );
  }
  await calls.readdir(path).catch((cause) => fail(path, cause));
  return {
    name: path,
    has: (file) => isFile(inside(path, file), calls),
    open: (file) => openFile(inside(path, file)),
    async text(file) {
      const source = await openFile(inside(path, file));
      try {
        return await sourceText(source);
      } finally {
        await source.close();
      }
    },
  };
}

async function openFile(path: string): Promise<ByteSource> {
  const handle = await open(path, "r").catch((cause) => fail(path, cause));
  try {
    const stats = await handle.stat();
    if (!stats.isFile()) throw new CheckpointError(path, "is not a file");
    return fileSource(path, handle, stats.size);
  } catch (error) {
    await handle.close();
    throw error;
  }
}

function fileSource(name: string, handle: FileHandle, size: number): ByteSource {
  const source: ByteSource = {
    name,
    size,
    async read(offset, length) {
      checkRange(source, offset, length);
      const bytes = new Uint8Array(length);
      let done = 0;
      while (done < length) {
        const wanted = Math.min(length - done, readBytesMax);
        const { bytesRead } = await handle
          .read(bytes, done, wanted, offset + done)
          .catch((cause) => fail(name, cause));
        if (bytesRead === 0) {
          throw new CheckpointError(
            name,
            `${done} of ${length} bytes could be read at ${offset}: the file has shrunk`,
          );
        }
        done += bytesRead;
      }
      return bytes;
    },
    close: () => handle.close(),
  };
  return source;
}

function inside(folder: string, file: string): string {
  checkRelativePath(folder, file);
  return join(folder, file);
}

/** Whether a file is there. One that can't be looked at may be, so that is an error. */
async function isFile(path: string, { stat }: FolderCalls): Promise<boolean> {
  try {
    return (await stat(path)).isFile();
  } catch (cause) {
    const code = codeOf(cause);
    if (code === "ENOENT" || code === "ENOTDIR") return false;
    return fail(path, cause);
  }
}

function codeOf(cause: unknown): string {
  return cause instanceof Error && "code" in cause ? String(cause.code) : "unknown error";
}

function fail(path: string, cause: unknown): never {
  const code = codeOf(cause);
  const reasons = new Map([
    ["ENOENT", "does not exist"],
    ["ENOTDIR", "lies under a file that is not a folder"],
    ["EACCES", "can't be read: permission denied"],
    ["EPERM", "can't be read: permission denied"],
    ["ENAMETOOLONG", "is too long a path"],
  ]);
  throw new CheckpointError(path, reasons.get(code) ?? `can't be read (${code})`, cause);
}
