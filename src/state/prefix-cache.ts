import type { HeldState } from "../backend/backend.ts";
import type { PageId, TokenId } from "../ids.ts";
import { pageRows } from "../limits.ts";
import type { CachedPrefix, CacheMiss, Entry, NewPrefix } from "./cached-prefix.ts";
import { EvictedPrefixes } from "./evicted-prefixes.ts";
import { nextVictim } from "./eviction.ts";
import { type PagePool, pagesFor } from "./kv-pages.ts";
import { isPrefix } from "./token-prefix.ts";

export interface PrefixCacheOptions {
  readonly pool: PagePool;
  readonly pageBytes: number;
  /** What entries may take: held states, and pages, each counted once. */
  readonly bytesMax: number;
  /** Sees what is evicted while it is still there. */
  readonly onEvict?: (entry: Entry) => Promise<void>;
}

/**
 * Cached prefixes by their exact tokens. An entry holds a state and shares pages, so that many of one
 * conversation cost their states alone.
 */
export class PrefixCache {
  readonly #options: PrefixCacheOptions;
  readonly #entries = new Set<Entry>();
  /** Of each page that entries hold, how many do. */
  readonly #pages = new Map<PageId, number>();
  readonly #evicted = new EvictedPrefixes();
  #heldBytes = 0;
  #uses = 0;

  constructor(options: PrefixCacheOptions) {
    this.#options = options;
  }

  get count(): number {
    return this.#entries.size;
  }

  /** Of states and pages, also of those that streams use as well. */
  get bytes(): number {
    return this.#heldBytes + this.#pages.size * this.#options.pageBytes;
  }

  /** Pages that would be free without the cache. */
  get idlePages(): number {
    const { pool } = this.#options;
    let idle = 0;
    for (const [page, count] of this.#pages) if (pool.holders(page) === count) idle++;
    return idle;
  }

  /** Full pages of an entry that streams use as well, which it therefore costs nothing to share. */
  pagesInUse({ rows, pages }: CachedPrefix): number {
    const { pool } = this.#options;
    const full = pages.slice(0, Math.floor(rows / pageRows));
    return full.filter((page) => pool.holders(page) > this.#pages.get(page)!).length;
  }

  /**
   * The longest entry that `ids` begin with and go on from.
   * @param needsContext whether the drafter's context must be there
   */
  longest(ids: readonly TokenId[], needsContext: boolean): Entry | null {
    let best: Entry | null = null;
    for (const entry of this.#entries) {
      if (entry.rows >= ids.length || entry.rows <= (best?.rows ?? 0)) continue;
      if (needsContext && !entry.context) continue;
      if (isPrefix(entry, ids)) best = entry;
    }
    return best;
  }

  /** Why a stream goes on from nothing. */
  missOf(ids: readonly TokenId[], needsContext: boolean): CacheMiss {
    // What is known has to make room for the very stream that would go on from it.
    if (this.longest(ids, needsContext)) return "evicted";
    if (this.longest(ids, false)) return "no_drafter_context";
    return this.#evicted.holdPrefixOf(ids) ? "evicted" : "no_match";
  }

  /** Notes that a stream goes on from an entry: the conversation is going on. */
  use(entry: Entry): void {
    entry.usedAt = ++this.#uses;
    entry.superseded = false;
    // What many share says nothing of the conversation that uses it.
    if (entry.kind !== "shared") entry.proven = true;
  }

  /** Whether there is such an entry; it then counts as used. */
  touch({ ids, rows, context }: Pick<NewPrefix, "ids" | "rows" | "context">): boolean {
    for (const entry of this.#entries) {
      if (entry.rows !== rows || (context && !entry.context) || !isPrefix(entry, ids)) continue;
      entry.usedAt = ++this.#uses;
      return true;
    }
    return false;
  }

  /**
   * Evicts until there is room for an entry.
   * @param heldBytes of its state
   * @returns false where it would not fit an empty cache
   */
  async makeRoom({ rows, pages }: NewPrefix, heldBytes: number): Promise<boolean> {
    const { bytesMax, pageBytes } = this.#options;
    const own = pages.slice(0, pagesFor(rows));
    if (heldBytes + own.length * pageBytes > bytesMax) return false;
    const added = () => own.filter((page) => !this.#pages.has(page)).length * pageBytes;
    while (this.bytes + heldBytes + added() > bytesMax)
      await this.#evict(nextVictim(this.#entries, this.#uses)!);
    return true;
  }

  /** Adds an entry, whose state is the cache's from now on. */
  add({ proven, ...prefix }: NewPrefix, held: HeldState): void {
    const pages = prefix.pages.slice(0, pagesFor(prefix.rows));
    const usedAt = ++this.#uses;
    const entry: Entry = { ...prefix, pages, held, usedAt, proven, superseded: false };
    this.#entries.add(entry);
    this.#heldBytes += held.bytes;
    for (const page of pages) {
      this.#options.pool.share(page);
      this.#pages.set(page, (this.#pages.get(page) ?? 0) + 1);
    }
  }

  /**
   * Evicts until so many pages are free. Where there can't be as many, nothing is evicted for it, nor
   * ever an entry all of whose pages streams use as well.
   * @param spared an entry that is about to be used
   */
  async freePages(count: number, spared: CachedPrefix | null): Promise<void> {
    const { pool } = this.#options;
    const kept = spared ? this.#idleOf(spared).length : 0;
    if (pool.freeCount + this.idlePages - kept < count) return;
    while (pool.freeCount < count) {
      const useful = [...this.#entries].filter((entry) => this.#idleOf(entry).length > 0);
      const entry = nextVictim(useful, this.#uses, spared);
      if (!entry) return;
      await this.#evict(entry);
    }
  }

  /**
   * Notes that a conversation has come to the latest user message: what is before that was left behind.
   * @param rows up to that message
   */
  supersede(ids: readonly TokenId[], rows: number): void {
    for (const entry of this.#entries) {
      const passing = entry.kind !== "shared" && entry.kind !== "cut";
      if (passing && entry.rows < rows && isPrefix(entry, ids)) entry.superseded = true;
    }
  }

  /** Forgets what one stream left, by its very array of tokens: it can't be trusted. */
  forget(ids: readonly TokenId[]): void {
    for (const entry of [...this.#entries]) if (entry.ids === ids) this.#drop(entry);
  }

  /** Forgets everything, as after a loss, where nothing is left to save. */
  clear(): void {
    for (const entry of [...this.#entries]) this.#drop(entry);
  }

  /** Entries in the order in which they would be evicted. */
  get victims(): Entry[] {
    const left = new Set(this.#entries);
    const order: Entry[] = [];
    for (let next = nextVictim(left, this.#uses); next; next = nextVictim(left, this.#uses)) {
      order.push(next);
      left.delete(next);
    }
    return order;
  }

  /** Pages of an entry that no stream uses. */
  #idleOf({ pages }: CachedPrefix): PageId[] {
    const { pool } = this.#options;
    return pages.filter((page) => pool.holders(page) === this.#pages.get(page));
  }

  async #evict(entry: Entry): Promise<void> {
    await this.#options.onEvict?.(entry);
    this.#evicted.add(entry);
    this.#drop(entry);
  }

  #drop(entry: Entry): void {
    if (!this.#entries.delete(entry)) return;
    this.#heldBytes -= entry.held.bytes;
    entry.held[Symbol.dispose]();
    for (const page of entry.pages) {
      this.#options.pool.give(page);
      const count = this.#pages.get(page)! - 1;
      if (count === 0) this.#pages.delete(page);
      else this.#pages.set(page, count);
    }
  }
}
