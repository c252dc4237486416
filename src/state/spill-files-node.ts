import { createHash, randomBytes } from "node:crypto";
import {
  type FileHandle,
  mkdir,
  open,
  readdir,
  rename,
  rm,
  stat,
  statfs,
  utimes,
} from "node:fs/promises";
import { join } from "node:path";
import { cacheFolder } from "../cache-folder-node.ts";
import { type Clock, systemClock } from "../clock.ts";
import type { SpillFiles } from "./spill-files.ts";
import type { SpillIdentity } from "./spill-header.ts";

const fileForm = /^([0-9a-f]{32})\.spill$/;
/** Half a file, by the process that writes it. */
const partForm = /^[0-9a-f]{32}\.spill\.(\d+)-[0-9a-f]{8}\.part$/;
/** No write takes longer. */
const partSecondsMax = 3600;
/** Node reads less than 2 GiB in one call. */
const readBytesMax = 2 ** 30;

/**
 * The folder of a model on a device, in the user's cache folder. Those of another build or with other
 * numerics were in it and are foreign, so that they go when the next store opens.
 */
export function spillFolder({ model, backend }: SpillIdentity): string {
  const key = createHash("sha256")
    .update(JSON.stringify([model, backend]))
    .digest("hex");
  return join(cacheFolder(), "deltafold", "spill", key.slice(0, 16));
}

/**
 * Files of a folder, which is made when it is needed; prompts can be read from them, so that they are the
 * user's alone. Time stamps say when a file was used last, in whole seconds.
 */
export function spillFiles(folder: string, clock: Clock = systemClock): SpillFiles {
  const pathOf = (name: string) => join(folder, `${name}.spill`);
  const make = () => mkdir(folder, { recursive: true, mode: 0o700 });
  return {
    newHash: () => createHash("sha256"),
    async list() {
      await make();
      const found: { name: string; bytes: number; usedMs: number }[] = [];
      for (const file of await readdir(folder)) {
        const path = join(folder, file);
        const stats = await stat(path).catch(gone);
        if (!stats?.isFile()) continue;
        const name = fileForm.exec(file)?.[1];
        if (name) found.push({ name, bytes: stats.size, usedMs: stats.mtimeMs });
        const writer = partForm.exec(file)?.[1];
        const age = clock.unixSeconds() - stats.mtimeMs / 1000;
        if (writer && isLeftover(Number(writer), age)) await rm(path, { force: true });
      }
      return found.sort((a, b) => a.usedMs - b.usedMs);
    },
    async read(name, bytesMax = Number.POSITIVE_INFINITY) {
      const handle = await open(pathOf(name), "r").catch(gone);
      if (!handle) return null;
      try {
        return await readAtMost(handle, bytesMax);
      } finally {
        await handle.close();
      }
    },
    async write(name, parts) {
      await make();
      const path = pathOf(name);
      const part = `${path}.${process.pid}-${randomBytes(4).toString("hex")}.part`;
      try {
        await writeSynced(part, parts, clock.unixSeconds());
        // A name that a crash of the system loses is a miss.
        await rename(part, path);
      } catch (cause) {
        await rm(part, { force: true }).catch(() => {});
        throw cause;
      }
    },
    async touch(name) {
      const seconds = clock.unixSeconds();
      await utimes(pathOf(name), seconds, seconds).catch(gone);
    },
    async remove(name) {
      await rm(pathOf(name), { force: true });
    },
    async freeBytes() {
      await make();
      const { bavail, bsize } = await statfs(folder);
      return bavail * bsize;
    },
  };
}

async function readAtMost(handle: FileHandle, bytesMax: number): Promise<Uint8Array> {
  const { size } = await handle.stat();
  const bytes = new Uint8Array(Math.min(size, bytesMax));
  let done = 0;
  while (done < bytes.length) {
    const wanted = Math.min(bytes.length - done, readBytesMax);
    const { bytesRead } = await handle.read(bytes, done, wanted, done);
    if (bytesRead === 0) break;
    done += bytesRead;
  }
  return bytes.subarray(0, done);
}

async function writeSynced(
  path: string,
  parts: Iterable<Uint8Array>,
  usedSeconds: number,
): Promise<void> {
  const handle = await open(path, "wx", 0o600);
  try {
    for (const bytes of parts) await handle.writeFile(bytes);
    await handle.utimes(usedSeconds, usedSeconds);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Whether nobody is writing a part that was written to so many seconds ago. */
function isLeftover(writer: number, age: number): boolean {
  if (age > partSecondsMax) return true;
  // An earlier process may have had this one's id, as in containers, where it is 1.
  if (writer === process.pid) return age > process.uptime() + 1;
  try {
    process.kill(writer, 0);
    return false;
  } catch (cause) {
    // Somebody else's process.
    return codeOf(cause) !== "EPERM";
  }
}

/** Takes what another process removed for absent. */
function gone(cause: unknown): null {
  if (codeOf(cause) === "ENOENT") return null;
  throw cause;
}

const codeOf = (cause: unknown): unknown =>
  cause instanceof Error && "code" in cause ? cause.code : null;
