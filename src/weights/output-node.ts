import { randomBytes } from "node:crypto";
import { type FileHandle, lstat, mkdir, open, rename, rm } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { DeltafoldError, InputError, messageOf } from "../errors.ts";
import type { OutputFile, OutputFolder } from "./output.ts";

/** What is asked of the disk; tests bring calls that fail. */
export interface OutputCalls {
  /** Writes some of `bytes` at `position` and returns how many. */
  writeAt(handle: FileHandle, bytes: Uint8Array, position: number): Promise<number>;
  sync(handle: FileHandle): Promise<void>;
  rename(from: string, to: string): Promise<void>;
}

export const diskCalls: OutputCalls = {
  writeAt: async (handle, bytes, position) =>
    (await handle.write(bytes, 0, bytes.length, position)).bytesWritten,
  sync: (handle) => handle.sync(),
  rename,
};

/**
 * Begins a folder. Its files are written to a hidden sibling, on the same file system, which is
 * renamed by `commit`.
 *
 * @throws InputError when `path` exists
 */
export async function createOutputFolder(
  path: string,
  calls: OutputCalls = diskCalls,
): Promise<OutputFolder> {
  const finalPath = resolve(path);
  const parent = dirname(finalPath);
  if (await exists(finalPath)) {
    throw new InputError(`${path} exists already; name a folder that does not, or remove it`);
  }
  const partial = join(parent, `.deltafold-partial-${randomBytes(6).toString("hex")}`);
  await mkdir(partial).catch((cause) => fail(parent, cause));
  const opened = new Set<FileHandle>();
  return {
    name: path,
    async create(file) {
      const target = join(partial, file);
      const handle = await open(target, "wx").catch((cause) => fail(target, cause));
      opened.add(handle);
      return outputFile(join(path, file), handle, calls, () => opened.delete(handle));
    },
    async commit() {
      await syncFolder(partial, calls);
      if (await exists(finalPath)) throw new InputError(`${path} has appeared meanwhile`);
      await calls.rename(partial, finalPath).catch((cause) => fail(path, cause));
      await syncFolder(parent, calls);
    },
    async abort() {
      // What a close says of a file that is thrown away doesn't matter; that it goes, does.
      await Promise.allSettled(Array.from(opened, (handle) => handle.close()));
      await rm(partial, { recursive: true, force: true });
    },
  };
}

function outputFile(
  name: string,
  handle: FileHandle,
  { writeAt, sync }: OutputCalls,
  onClose: () => void,
): OutputFile {
  return {
    async write(offset, bytes) {
      let done = 0;
      while (done < bytes.length) {
        const written = await writeAt(handle, bytes.subarray(done), offset + done).catch((cause) =>
          fail(name, cause),
        );
        if (written === 0) fail(name, new Error("nothing could be written"));
        done += written;
      }
    },
    async close() {
      await sync(handle).catch((cause) => fail(name, cause));
      await handle.close().catch((cause) => fail(name, cause));
      onClose();
    },
  };
}

/** Makes names durable. Windows can't open folders, and needs no such call. */
async function syncFolder(path: string, { sync }: OutputCalls): Promise<void> {
  if (process.platform === "win32") return;
  const handle = await open(path, "r").catch((cause) => fail(path, cause));
  await sync(handle).catch((cause) => fail(path, cause));
  await handle.close();
}

async function exists(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch {
    return false;
  }
}

function fail(path: string, cause: unknown): never {
  const code = cause instanceof Error && "code" in cause ? cause.code : null;
  const reasons = new Map<unknown, string>([
    ["ENOSPC", "no space is left on the disk"],
    ["EDQUOT", "the disk quota is used up"],
    ["EACCES", "permission denied"],
    ["EROFS", "the file system is read-only"],
    ["ENOENT", "the folder does not exist"],
  ]);
  const reason = reasons.get(code) ?? messageOf(cause);
  throw new DeltafoldError("write_failed", `${path}: can't be written: ${reason}`, { cause });
}
