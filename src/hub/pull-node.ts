import type { Folder } from "../checkpoint/source.ts";
import { type DownloadPlace, type DownloadWatch, downloadFile } from "./download-node.ts";
import type { PassingFault } from "./faults.ts";
import { explained, freeBytes } from "./file-system-node.ts";
import { HubError } from "./hub-error.ts";
import type { Hub } from "./hub-node.ts";
import { inParallel } from "./in-parallel.ts";
import type { HubFile, HubListing } from "./listing.ts";
import { FileLock } from "./lock-node.ts";
import { type HubName, hubNameText } from "./names.ts";
import { type NeededFiles, neededFiles } from "./needed-files.ts";
import { partBytes, sweepParts } from "./parts-node.ts";
import { checkText, remoteFolder } from "./remote-folder-node.ts";

const filesAtOnce = 4;

/** Whom a pull reports to. */
export interface PullWatch {
  /** Bytes of all its files that are there. */
  readonly onBytes: (bytes: number) => void;
  readonly onFault: (fault: PassingFault) => void;
}

/** What a pull is made of. */
interface PullParts {
  readonly name: HubName;
  readonly place: DownloadPlace;
  readonly signal: AbortSignal;
  readonly lock: FileLock;
  readonly remote: Folder;
  readonly texts: readonly HubFile[];
  readonly weights: readonly HubFile[];
  /** How much of each file is there. */
  readonly there: Map<HubFile, number>;
  readonly freeBytes: number;
}

/** A model that is about to be pulled. Until it is disposed of, no other process pulls the same. */
export class Pull implements AsyncDisposable {
  readonly #parts: PullParts;
  /** Of all files. */
  readonly totalBytes: number;
  /** What is still to come of them. */
  readonly missingBytes: number;
  /** What the cache's disk has room for. */
  readonly freeBytes: number;

  private constructor(parts: PullParts) {
    this.#parts = parts;
    this.totalBytes = sum(this.files.map(({ size }) => size));
    this.missingBytes = this.totalBytes - sum(parts.there.values());
    this.freeBytes = parts.freeBytes;
  }

  /**
   * Asks the hub what a model consists of. The config and the index of its weights are pulled.
   * @param onWait hears of another process that pulls it
   * @throws HubError, CheckpointError where it is nothing that can be loaded
   */
  static async open(
    hub: Hub,
    name: HubName,
    signal: AbortSignal,
    onWait: (process: number | null) => void = () => {},
  ): Promise<Pull> {
    if (hub.settings.offline) {
      const message = `${hubNameText(name)} can't be pulled: HF_HUB_OFFLINE is set.`;
      throw new HubError("hub_offline", message);
    }
    const listing = await hub.client.list(name, signal);
    const cache = hub.cacheOf(name.repo);
    const place = { client: hub.client, cache, listing };
    return await explaining(cache.folder, async () => {
      const lock = await FileLock.take(cache.lock, hub.time, signal, onWait);
      try {
        return await Pull.#plan(name, place, signal, lock);
      } catch (error) {
        await lock[Symbol.asyncDispose]();
        throw error;
      }
    });
  }

  static async #plan(
    name: HubName,
    place: DownloadPlace,
    signal: AbortSignal,
    lock: FileLock,
  ): Promise<Pull> {
    const { cache, listing } = place;
    const remote = remoteFolder(place, signal);
    const needed = await neededFiles(remote);
    checkWhole(listing, needed);
    const found = (paths: readonly string[]) => paths.map((path) => listing.files.get(path)!);
    const [texts, weights] = [found(needed.texts), found(needed.weights)];
    for (const file of texts) checkText(listing, file);
    const there = await whatIsThere(place, [...texts, ...weights]);
    const free = await freeBytes(cache.folder);
    return new Pull({ name, place, signal, lock, remote, texts, weights, there, freeBytes: free });
  }

  get name(): HubName {
    return this.#parts.name;
  }

  get commit(): string {
    return this.#parts.place.listing.commit;
  }

  /** Where the snapshot is, once it is whole. */
  get folder(): string {
    return this.#parts.place.cache.snapshot(this.commit);
  }

  /** The files as the hub lists them. */
  get remote(): Folder {
    return this.#parts.remote;
  }

  get files(): readonly HubFile[] {
    return [...this.#parts.texts, ...this.#parts.weights];
  }

  /**
   * Pulls what is missing. The weights come last, so that a snapshot that has them is whole; and a branch
   * is the new commit when all of it is there.
   * @throws HubError; DeltafoldError where it can't be written
   */
  async run({ onBytes, onFault }: PullWatch): Promise<void> {
    const { place, texts, weights, name, there } = this.#parts;
    const { cache, listing } = place;
    const report: Omit<DownloadWatch, "signal"> = {
      onBytes(file, bytes) {
        there.set(file, bytes);
        onBytes(sum(there.values()));
      },
      onFault,
    };
    await explaining(cache.folder, async () => {
      for (const files of [texts, weights]) {
        await inParallel(files, filesAtOnce, this.#parts.signal, (file, signal) =>
          downloadFile(place, file, { ...report, signal }),
        );
      }
      await cache.setCommit(name.revision, listing.commit);
      await sweepParts(cache.blobs);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#parts.lock[Symbol.asyncDispose]();
  }
}

/** @throws HubError where files are missing on the hub itself */
function checkWhole({ repo }: HubListing, { missing }: NeededFiles): void {
  if (missing.length === 0) return;
  const lacks = `${repo} has no ${missing[0]}`;
  throw new HubError("hub_no_checkpoint", `${lacks}, so it is no checkpoint that can be loaded.`);
}

/** How much of each file is in the snapshot, among the blobs, or in a part of one. */
async function whatIsThere(
  { cache, listing }: DownloadPlace,
  files: readonly HubFile[],
): Promise<Map<HubFile, number>> {
  const parts = await partBytes(cache.blobs);
  const there = new Map<HubFile, number>();
  for (const file of files) {
    const isWhole = (await cache.has(listing.commit, file)) || (await cache.hasBlob(file));
    const part = Math.min(file.size, parts.get(file.digest.hex) ?? 0);
    there.set(file, isWhole ? file.size : part);
  }
  return there;
}

const sum = (values: Iterable<number>): number => [...values].reduce((all, each) => all + each, 0);

/** Says what the file system refuses in words. */
async function explaining<T>(folder: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw explained(folder, error);
  }
}
