import { lstat, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { namesIn, orAbsent } from "./file-system-node.ts";
import type { Hub } from "./hub-node.ts";
import { FileLock } from "./lock-node.ts";
import { type HubName, isCommit } from "./names.ts";
import type { RepoCache } from "./repo-cache-node.ts";
import { filesBelow, refsOf, snapshotFiles } from "./snapshot-files-node.ts";

/**
 * Removes a model from the cache: all of it, or of a revision what no other has. First go names, then what
 * they stand for, so that nothing is left that leads nowhere, whenever this is ended. No other process pulls
 * the model meanwhile.
 * @param confirm hears what the disk will have more of
 * @returns how much that was; null where the model isn't there, or it was not confirmed
 */
export async function removeModel(
  hub: Hub,
  name: HubName,
  signal: AbortSignal,
  confirm: (bytes: number) => Promise<boolean>,
): Promise<number | null> {
  const cache = hub.cacheOf(name.repo);
  if ((await pathsToRemove(cache, name)) === null) return null;
  await using _lock = await FileLock.take(cache.lock, hub.time, signal, () => {});
  const paths = await pathsToRemove(cache, name);
  if (paths === null) return null;
  const bytes = await bytesOf(paths);
  if (!(await confirm(bytes))) return null;
  for (const path of paths) await rm(path, { recursive: true, force: true });
  return bytes;
}

/** In the order in which they are to go; null where there is nothing. */
async function pathsToRemove(cache: RepoCache, { revision }: HubName): Promise<string[] | null> {
  const commits = (await namesIn(cache.snapshots)).filter(isCommit);
  if (revision === null) {
    return (await namesIn(cache.folder)).length > 0 ? wholePaths(cache) : null;
  }
  const commit = await cache.commitOf(revision);
  if (commit === null || !commits.includes(commit)) return null;
  return commits.length > 1 ? await pathsOf(cache, commit) : wholePaths(cache);
}

const wholePaths = (cache: RepoCache): string[] => [
  cache.refs,
  cache.snapshots,
  cache.blobs,
  cache.folder,
];

/** What one of several commits has for itself. */
async function pathsOf(cache: RepoCache, commit: string): Promise<string[]> {
  const refs = [...(await refsOf(cache))].filter(([, of]) => of === commit);
  const own = await blobsOf(cache, commit);
  for (const other of await namesIn(cache.snapshots)) {
    if (other !== commit) for (const blob of await blobsOf(cache, other)) own.delete(blob);
  }
  return [...refs.map(([name]) => join(cache.refs, name)), cache.snapshot(commit), ...own];
}

/** A link may lead out of the blobs, where somebody made it: that is none of ours to remove. */
async function blobsOf(cache: RepoCache, commit: string): Promise<Set<string>> {
  const files = await snapshotFiles(cache, commit);
  return new Set(
    files.flatMap(({ blob }) => (blob !== null && dirname(blob) === cache.blobs ? [blob] : [])),
  );
}

/** Of all files at or below some paths. Links count as what they are themselves. */
async function bytesOf(paths: readonly string[]): Promise<number> {
  const files = new Set<string>();
  for (const path of paths) {
    for (const file of await filesAt(path)) files.add(file);
  }
  let bytes = 0;
  for (const file of files) {
    const stats = await lstat(file).catch(orAbsent(null));
    if (stats && !stats.isDirectory()) bytes += stats.size;
  }
  return bytes;
}

async function filesAt(path: string): Promise<string[]> {
  const below = await filesBelow(path);
  return below.length > 0 ? below : [path];
}
