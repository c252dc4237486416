import { readConfig } from "../../checkpoint/config.ts";
import { isDrafterFolder } from "../../checkpoint/drafter-kind.ts";
import { openFolder } from "../../checkpoint/source-node.ts";
import { DeltafoldError } from "../../errors.ts";
import { isWhole } from "../../hub/find-node.ts";
import type { Hub } from "../../hub/hub-node.ts";
import { hubNameText, mainRevision } from "../../hub/names.ts";
import { type CachedSnapshot, scanCache } from "../../hub/scan-node.ts";

/** What `list --json` prints of each. */
export interface ListedModel {
  /** As commands take it. */
  readonly name: string;
  readonly repo: string;
  readonly commit: string;
  /** The branches and tags that it was when it was pulled. */
  readonly revisions: readonly string[];
  /** `other`: nothing that deltafold loads. */
  readonly kind: "model" | "drafter" | "incomplete" | "other";
  /** Commits of a model may share files. */
  readonly bytes: number;
  readonly folder: string;
}

/** What `list --json` prints. */
export interface CacheReport {
  readonly cache: string;
  readonly models: readonly ListedModel[];
  /** Downloads that were begun and not ended. */
  readonly begun: readonly { readonly repo: string; readonly bytes: number }[];
}

export async function describeCache(hub: Hub): Promise<CacheReport> {
  const found = await scanCache(hub);
  const models: ListedModel[] = [];
  for (const { repo, snapshots } of found) {
    for (const snapshot of snapshots) {
      const { commit, revisions, bytes, folder } = snapshot;
      const name = hubNameText({ repo, revision: shortest(snapshot) });
      const kind = await kindOf(folder);
      models.push({ name, repo, commit, revisions, kind, bytes, folder });
    }
  }
  const begun = found.filter(({ begunBytes }) => begunBytes > 0);
  return {
    cache: hub.settings.cache,
    models,
    begun: begun.map(({ repo, begunBytes: bytes }) => ({ repo, bytes })),
  };
}

/** The revision by which a snapshot is named in few letters. */
const shortest = ({ revisions, commit }: CachedSnapshot): string =>
  revisions.includes(mainRevision) ? mainRevision : (revisions[0] ?? commit);

async function kindOf(snapshot: string): Promise<ListedModel["kind"]> {
  try {
    const folder = await openFolder(snapshot);
    const isDrafter = await isDrafterFolder(folder);
    if (!isDrafter) await readConfig(folder);
    if (!(await isWhole(snapshot))) return "incomplete";
    return isDrafter ? "drafter" : "model";
  } catch (error) {
    if (error instanceof DeltafoldError) return "other";
    throw error;
  }
}
