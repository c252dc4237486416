import type { Snapshot } from "../backend/backend.ts";
import { messageOf } from "../errors.ts";
import type { TokenId } from "../ids.ts";
import { decodeSpill, encodeSpill, type SpillEntry, spillBytes } from "./spill-file.ts";
import type { SpillFiles } from "./spill-files.ts";
import type { SpillIdentity } from "./spill-header.ts";
import { type Spilled, spilledIn, spillName } from "./spilled.ts";
import { isPrefix, type TokenPrefix } from "./token-prefix.ts";

export interface SpillOptions {
  /** What the files of this store may take together. */
  readonly maxBytes: number;
  /** What a write must leave free on the disk. */
  readonly minFreeBytes: number;
  /** Hears once of a disk that fails. */
  readonly onWarning?: (message: string) => void;
}

/**
 * Evicted cache entries on disk, by their exact tokens; also those of an earlier process. A disk that
 * fails makes misses, never errors. Another process may use the same files: what it removed is a miss,
 * and what it adds is seen at the next `open`.
 */
export class SpillStore {
  readonly #files: SpillFiles;
  readonly #identity: SpillIdentity;
  readonly #options: SpillOptions;
  /** By name, least recently used first. */
  readonly #entries = new Map<string, Spilled>();
  /** Changes of the files happen one after the other. */
  #changes: Promise<unknown> = Promise.resolve();
  #warned = false;

  private constructor(files: SpillFiles, identity: SpillIdentity, options: SpillOptions) {
    this.#files = files;
    this.#identity = identity;
    this.#options = options;
  }

  /** Indexes the files that are there. Those that are torn, or of another identity, are removed. */
  static async open(
    files: SpillFiles,
    identity: SpillIdentity,
    options: SpillOptions,
  ): Promise<SpillStore> {
    const store = new SpillStore(files, identity, options);
    const found = (await store.#attempt(() => files.list())) ?? [];
    for (const { name, bytes } of found) await store.#attempt(() => store.#index(name, bytes));
    for (const name of store.#victims(0)) await store.#attempt(() => store.#remove(name));
    return store;
  }

  get count(): number {
    return this.#entries.size;
  }

  /** Of all files together. */
  get bytes(): number {
    let sum = 0;
    for (const entry of this.#entries.values()) sum += entry.bytes;
    return sum;
  }

  /** Whether there is an entry of just these tokens. */
  has({ ids, rows }: TokenPrefix, context: boolean): boolean {
    for (const entry of this.#entries.values()) {
      if (entry.rows === rows && entry.context === context && isPrefix(entry, ids)) return true;
    }
    return false;
  }

  /**
   * The longest entry that `ids` begin with and go on from.
   * @param needsContext whether the drafter's context must be there
   */
  longest(
    ids: readonly TokenId[],
    needsContext: boolean,
  ): { readonly name: string; readonly rows: number } | null {
    let best: { readonly name: string; readonly rows: number } | null = null;
    for (const [name, entry] of this.#entries) {
      if (entry.rows >= ids.length || entry.rows <= (best?.rows ?? 0)) continue;
      if (needsContext && !entry.context) continue;
      if (isPrefix(entry, ids)) best = { name, rows: entry.rows };
    }
    return best;
  }

  /** Reads an entry back, bit for bit; null where it is gone or damaged, which `longest` then knows. */
  async read(name: string): Promise<SpillEntry | null> {
    if (!this.#entries.has(name)) return null;
    const bytes = await this.#attempt(() => this.#files.read(name));
    const entry =
      bytes && (await this.#attempt(() => decodeSpill(bytes, this.#identity, this.#files.newHash)));
    if (entry && this.#nameOf(entry) === name) {
      await this.#use(name);
      return entry;
    }
    this.#entries.delete(name);
    if (bytes) await this.#change(() => this.#attempt(() => this.#remove(name)));
    return null;
  }

  /**
   * Writes an entry, after removing what was not used for longest where room is needed. The snapshot must
   * not change before this resolves.
   * @returns whether it is there now; false where it may not take the room, or the disk fails
   */
  write(ids: readonly TokenId[], context: boolean, snapshot: Snapshot): Promise<boolean> {
    const entry = { ids: [...ids], context, snapshot };
    return this.#change(() => this.#write(entry));
  }

  async #write(entry: SpillEntry): Promise<boolean> {
    const { ids, context } = entry;
    const name = this.#nameOf(entry);
    if (this.#entries.has(name)) {
      await this.#use(name);
      return true;
    }
    const bytes = spillBytes(entry, this.#identity);
    if (!(await this.#attempt(() => this.#makeRoom(bytes)))) return false;
    const parts = encodeSpill(entry, this.#identity, this.#files.newHash);
    const written = await this.#attempt(async () => {
      await this.#files.write(name, parts);
      return true;
    });
    if (!written) return false;
    this.#entries.set(name, { ids, rows: ids.length, context, bytes });
    return true;
  }

  /** False, with nothing removed, where there would not be enough. */
  async #makeRoom(bytes: number): Promise<boolean> {
    const { maxBytes, minFreeBytes } = this.#options;
    if (bytes > maxBytes) return false;
    const victims = this.#victims(bytes);
    const freed = victims.reduce((sum, name) => sum + this.#entries.get(name)!.bytes, 0);
    if ((await this.#files.freeBytes()) + freed - bytes < minFreeBytes) return false;
    for (const name of victims) await this.#remove(name);
    return true;
  }

  /** What must go so that `bytes` more may be taken. */
  #victims(bytes: number): string[] {
    const victims: string[] = [];
    let taken = this.bytes + bytes;
    for (const [name, entry] of this.#entries) {
      if (taken <= this.#options.maxBytes) break;
      victims.push(name);
      taken -= entry.bytes;
    }
    return victims;
  }

  async #index(name: string, bytes: number): Promise<void> {
    const entry = await spilledIn(this.#files, name, bytes, this.#identity);
    if (entry) this.#entries.set(name, entry);
    else await this.#remove(name);
  }

  async #use(name: string): Promise<void> {
    const entry = this.#entries.get(name);
    if (!entry) return;
    this.#entries.delete(name);
    this.#entries.set(name, entry);
    await this.#attempt(() => this.#files.touch(name));
  }

  async #remove(name: string): Promise<void> {
    await this.#files.remove(name);
    this.#entries.delete(name);
  }

  #nameOf({ ids, context }: Pick<SpillEntry, "ids" | "context">): string {
    return spillName(ids, context, this.#identity, this.#files.newHash);
  }

  #change<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#changes.then(work);
    this.#changes = done.catch(() => {});
    return done;
  }

  /** Null where the disk fails. */
  async #attempt<T>(work: () => Promise<T>): Promise<T | null> {
    try {
      return await work();
    } catch (cause) {
      if (!this.#warned) {
        const reason = messageOf(cause);
        this.#options.onWarning?.(`The cache on disk fails: ${reason}`);
      }
      this.#warned = true;
      return null;
    }
  }
}
