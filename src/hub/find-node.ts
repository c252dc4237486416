import { openFolder } from "../checkpoint/source-node.ts";
import { namesIn } from "./file-system-node.ts";
import type { Hub } from "./hub-node.ts";
import type { HubName } from "./names.ts";
import { neededFiles } from "./needed-files.ts";

/**
 * A model's folder in the cache, as it was when it was last pulled; the hub isn't asked. Null where it
 * isn't there, or not all of it.
 * @throws CheckpointError where its config can't be read
 */
export async function findCached(hub: Hub, name: HubName): Promise<string | null> {
  const folder = await cachedFolder(hub, name);
  return folder !== null && (await isWhole(folder)) ? folder : null;
}

/** The same, whether all of it is there or not. */
export async function cachedFolder(hub: Hub, { repo, revision }: HubName): Promise<string | null> {
  const cache = hub.cacheOf(repo);
  const commit = await cache.commitOf(revision);
  return commit === null ? null : cache.snapshot(commit);
}

/** Whether a snapshot has all that is needed to load it. @throws CheckpointError */
export async function isWhole(snapshot: string): Promise<boolean> {
  if ((await namesIn(snapshot)).length === 0) return false;
  const { missing } = await neededFiles(await openFolder(snapshot));
  return missing.length === 0;
}
