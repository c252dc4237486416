import { lstat, readdir, readFile, readlink } from "node:fs/promises";
import { dirname, join, relative, resolve, sep } from "node:path";
import { fileBytes, orAbsent } from "./file-system-node.ts";
import { isCommit } from "./names.ts";
import type { RepoCache } from "./repo-cache-node.ts";

/** A file of a snapshot. */
interface SnapshotFile {
  readonly path: string;
  /** The blob that it is a link to; null where it is no link. */
  readonly blob: string | null;
  /** Of the blob where it is one; 0 where that is missing. */
  readonly bytes: number;
}

/** All files below a folder; none where it isn't there. */
export async function filesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(
    orAbsent([]),
  );
  return entries
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name));
}

export async function snapshotFiles(cache: RepoCache, commit: string): Promise<SnapshotFile[]> {
  const paths = await filesBelow(cache.snapshot(commit));
  return await Promise.all(
    paths.map(async (path) => {
      const isLink = (await lstat(path)).isSymbolicLink();
      const blob = isLink ? resolve(dirname(path), await readlink(path)) : null;
      return { path, blob, bytes: (await fileBytes(path)) ?? 0 };
    }),
  );
}

/** The revisions that have been pulled, with the commit that each was. */
export async function refsOf(cache: RepoCache): Promise<ReadonlyMap<string, string>> {
  const refs = new Map<string, string>();
  for (const path of await filesBelow(cache.refs)) {
    const commit = (await readFile(path, "utf8")).trim();
    const revision = relative(cache.refs, path).split(sep).join("/");
    if (isCommit(commit)) refs.set(revision, commit);
  }
  return refs;
}
