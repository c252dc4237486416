import { readdir, stat, statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { DeltafoldError } from "../errors.ts";

/** A failed call's code, such as ENOENT. */
export const codeOf = (cause: unknown): unknown =>
  cause instanceof Error && "code" in cause ? cause.code : null;

/** Takes what isn't there for `absent`. */
export function orAbsent<T>(absent: T): (cause: unknown) => T {
  return (cause) => {
    if (codeOf(cause) === "ENOENT" || codeOf(cause) === "ENOTDIR") return absent;
    throw cause;
  };
}

/** The size of a file, links followed; null where there is none. */
export async function fileBytes(path: string): Promise<number | null> {
  const stats = await stat(path).catch(orAbsent(null));
  return stats?.isFile() ? stats.size : null;
}

/** The names in a folder; none where it isn't there. */
export const namesIn = (folder: string): Promise<string[]> =>
  readdir(folder).catch(orAbsent<string[]>([]));

/** Bytes that a folder's disk has room for; the folder may have yet to be made. */
export async function freeBytes(folder: string): Promise<number> {
  const room = await statfs(folder).catch(orAbsent(null));
  return room ? room.bavail * room.bsize : await freeBytes(dirname(folder));
}

const reasons: ReadonlyMap<unknown, string> = new Map([
  ["ENOSPC", "no space is left on the disk"],
  ["EDQUOT", "the disk quota is used up"],
  ["EACCES", "permission denied"],
  ["EPERM", "permission denied"],
  ["EROFS", "the file system is read-only"],
]);

/** What a user can do something about, in words; anything else as it is. */
export function explained(folder: string, cause: unknown): unknown {
  const reason = reasons.get(codeOf(cause));
  if (reason === undefined) return cause;
  return new DeltafoldError("write_failed", `${folder}: can't be written: ${reason}`, { cause });
}
