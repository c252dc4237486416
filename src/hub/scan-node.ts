import { namesIn } from "./file-system-node.ts";
import type { Hub } from "./hub-node.ts";
import { isCommit, repoOfFolder } from "./names.ts";
import { partBytes } from "./parts-node.ts";
import type { RepoCache } from "./repo-cache-node.ts";
import { refsOf, snapshotFiles } from "./snapshot-files-node.ts";

/** A model at a commit, in the cache. */
export interface CachedSnapshot {
  readonly commit: string;
  /** Branches and tags that were this commit when they were pulled. */
  readonly revisions: readonly string[];
  readonly folder: string;
  /** Of its files; snapshots may share them. */
  readonly bytes: number;
}

export interface CachedModel {
  readonly repo: string;
  readonly snapshots: readonly CachedSnapshot[];
  /** Of downloads that were begun and not ended. */
  readonly begunBytes: number;
}

/** The names of the models in the cache, be they pulled by us or by others. */
export async function cachedRepos({ settings }: Hub): Promise<string[]> {
  const folders = (await namesIn(settings.cache)).sort();
  return folders.map(repoOfFolder).filter((repo) => repo !== null);
}

/** What is in the cache, in the order of the names. */
export async function scanCache(hub: Hub): Promise<CachedModel[]> {
  const models: CachedModel[] = [];
  for (const repo of await cachedRepos(hub)) {
    const cache = hub.cacheOf(repo);
    const begun = [...(await partBytes(cache.blobs)).values()];
    models.push({
      repo,
      snapshots: await scanSnapshots(cache),
      begunBytes: begun.reduce((sum, bytes) => sum + bytes, 0),
    });
  }
  return models;
}

async function scanSnapshots(cache: RepoCache): Promise<CachedSnapshot[]> {
  const refs = [...(await refsOf(cache))];
  const snapshots: CachedSnapshot[] = [];
  for (const commit of (await namesIn(cache.snapshots)).filter(isCommit).sort()) {
    const files = await snapshotFiles(cache, commit);
    snapshots.push({
      commit,
      revisions: refs.filter(([, of]) => of === commit).map(([revision]) => revision),
      folder: cache.snapshot(commit),
      bytes: files.reduce((sum, { bytes }) => sum + bytes, 0),
    });
  }
  return snapshots;
}
