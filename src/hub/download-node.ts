import { mkdir, rename } from "node:fs/promises";
import type { Attempt, HubClient } from "./client.ts";
import { PassingFault, RangeFault } from "./faults.ts";
import { HubError } from "./hub-error.ts";
import type { HubFile, HubListing } from "./listing.ts";
import { PartFile } from "./part-file-node.ts";
import { claimPart } from "./parts-node.ts";
import type { RepoCache } from "./repo-cache-node.ts";

/** From where files come, and where they go. */
export interface DownloadPlace {
  readonly client: HubClient;
  readonly cache: RepoCache;
  readonly listing: HubListing;
}

/** Whom a download reports to. */
export interface DownloadWatch {
  readonly signal: AbortSignal;
  /** How many of a file's bytes are there; fewer than before where it begins anew. */
  readonly onBytes: (file: HubFile, bytes: number) => void;
  /** Something failed, and is tried again. */
  readonly onFault: (fault: PassingFault) => void;
}

/**
 * Gives a snapshot a file: from the blobs, or else from the hub. It has its name once its bytes hash to
 * what the hub says. Where this is ended, what has come stays, and the next goes on from there.
 * @throws HubError, and what the file system says
 */
export async function downloadFile(
  place: DownloadPlace,
  file: HubFile,
  watch: DownloadWatch,
): Promise<void> {
  const { cache, listing } = place;
  if (!(await cache.has(listing.commit, file))) {
    const isNew = !(await cache.hasBlob(file));
    if (isNew) await makeBlob(place, file, watch);
    await cache.link(listing.commit, file, isNew);
  }
  watch.onBytes(file, file.size);
}

async function makeBlob(place: DownloadPlace, file: HubFile, watch: DownloadWatch): Promise<void> {
  const { client, cache, listing } = place;
  const { hex } = file.digest;
  const what = `${listing.repo}/${file.path}`;
  await mkdir(cache.blobs, { recursive: true });
  using claimed = await claimPart(cache.blobs, hex);
  // It is closed before it gets its name: Windows renames no open file.
  {
    await using part = await PartFile.open(claimed.path, file, watch.signal);
    watch.onBytes(file, part.bytes);
    let [mismatches, misfits] = [0, 0];
    const attempt = async (attempt: Attempt) => {
      try {
        if (!part.isWhole) await fill(place, file, part, watch, attempt);
      } catch (error) {
        // Where a server can't go on with a file, it may begin it.
        if (error instanceof RangeFault && misfits++ > 0) await part.restart();
        throw error;
      }
      const found = await part.finish();
      if (found === hex) return;
      await part.restart();
      const detail = `its bytes hash to ${found}, and the hub says ${hex}`;
      if (mismatches++ > 0) throw new HubError("hub_digest", `${what}: ${detail}.`);
      throw new PassingFault(detail);
    };
    await client.retried(what, watch.signal, attempt, watch.onFault);
  }
  await rename(claimed.path, cache.blob(file));
}

/** Brings a part to its full length. @throws PassingFault where less comes */
async function fill(
  { client, listing }: DownloadPlace,
  file: HubFile,
  part: PartFile,
  { onBytes }: DownloadWatch,
  attempt: Attempt,
): Promise<void> {
  const body = await client.open(listing, file, part.bytes, attempt);
  if (body.start < part.bytes) await part.restart();
  for await (const piece of body.pieces) {
    await part.append(piece);
    attempt.faults.reached(part.bytes);
    onBytes(file, part.bytes);
    if (part.isWhole) return;
  }
  throw new PassingFault(`the answer ended ${file.size - part.bytes} bytes early`);
}
