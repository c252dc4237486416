import { heldBytes } from "../backend/held.ts";
import { identityOf } from "../backend/identity.ts";
import type { Clock } from "../clock.ts";
import { invariant, MemoryError } from "../errors.ts";
import { pageRows } from "../limits.ts";
import type { CachedPrefix, CacheMiss, Entry, PrefixKind } from "../state/cached-prefix.ts";
import { PagePool, PageTable, pagesFor } from "../state/kv-pages.ts";
import { PrefixCache } from "../state/prefix-cache.ts";
import { SlotPool } from "../state/slots.ts";
import type { SpillStore } from "../state/spill-store.ts";
import { extendContext } from "./drafter-context.ts";
import type { LiveBackend } from "./live-backend.ts";
import type { LiveStream } from "./live-stream.ts";
import { byTurn } from "./schedule.ts";
import { SpillQueue } from "./spill-queue.ts";

/** Tokens by which each live stream may grow before it matters to those that wait. */
export const growthRows = 512;
/** For how long a stop may write states to disk. */
const closeMsMax = 10_000;
/** A state on disk has to save so many rows more than one at hand: it has to be read. */
const spillGainRows = 256;

/** Where states go on being known. */
export interface CacheOptions {
  /** What cached states and their pages may take; 0: nothing is cached. */
  readonly bytesMax: number;
  /** Where evicted states go; null: they are gone. */
  readonly spill: SpillStore | null;
}

/**
 * The slots and pages of one backend, and who has them: streams and the cache. Pages that only the cache
 * holds are as good as free. Where even they don't suffice, the newest streams give theirs up, and go on
 * when there is room again: the oldest never waits.
 */
export class StreamMemory {
  readonly #live: LiveBackend;
  readonly #slots: SlotPool;
  readonly #pages: PagePool;
  readonly #cache: PrefixCache | null;
  readonly #spill: SpillStore | null;
  readonly #spilling: SpillQueue | null;
  readonly #stateBytes: number;
  readonly #pageBytes: number;
  /** What results depend on; states on disk are those of the backend that was opened first. */
  readonly #identity: string;

  constructor(live: LiveBackend, { bytesMax, spill }: CacheOptions) {
    const { slots, pages, memory, shape } = live.current.info;
    this.#live = live;
    this.#slots = new SlotPool(slots);
    this.#pages = new PagePool(pages);
    this.#spill = spill;
    this.#spilling = spill && new SpillQueue(live, spill);
    this.#stateBytes = heldBytes(shape);
    this.#pageBytes = memory.kvBytes / pages;
    this.#identity = identityOf(live.current.info);
    const sizes = { pool: this.#pages, pageBytes: this.#pageBytes, bytesMax };
    const onEvict = async (entry: Entry) => await this.#spillOut(entry, false);
    this.#cache = bytesMax > 0 ? new PrefixCache({ ...sizes, onEvict }) : null;
  }

  /** Slots and pages that nobody holds. */
  get free(): { readonly slots: number; readonly pages: number } {
    return { slots: this.#slots.freeCount, pages: this.#pages.freeCount };
  }

  /** What is cached. */
  get cached(): { readonly entries: number; readonly bytes: number } {
    return { entries: this.#cache?.count ?? 0, bytes: this.#cache?.bytes ?? 0 };
  }

  /**
   * Whether a stream may have a slot now: its tokens and some growth fit beside what is promised to those
   * that have one. Where nobody has, it may.
   */
  canAdmit(stream: LiveStream, live: readonly LiveStream[]): boolean {
    if (this.#slots.freeCount === 0) return false;
    if (live.length === 0) return true;
    const promised = live.reduce((sum, each) => sum + pagesWanted(each) - pagesHeld(each), 0);
    const prefix = this.#prefixOf(stream);
    const shared = (prefix && this.#cache?.pagesInUse(prefix)) ?? 0;
    const room = this.#pages.freeCount + (this.#cache?.idlePages ?? 0) + shared;
    return pagesWanted(stream) + promised <= room;
  }

  /** Gives a stream a slot. @throws BackendError; it has the slot all the same */
  admit(stream: LiveStream): void {
    stream.slot = this.#slots.take();
    invariant(stream.slot !== null, "admitted without a slot");
    stream.pages = new PageTable(this.#pages);
    stream.phase = "filling";
    this.#live.current.open(stream.slot);
  }

  /**
   * Lets a stream go on from the longest prefix that is known, before it is fed.
   * @returns false while that is being read
   */
  async begin(stream: LiveStream): Promise<boolean> {
    const prefix = this.#prefixOf(stream);
    if (this.#reads(stream, prefix)) return false;
    // While it was read, another stream may have left more.
    const found = (stream.found?.ids.length ?? 0) > (prefix?.rows ?? 0) ? stream.found : null;
    stream.found = undefined;
    stream.begun = true;
    if (found && (await this.#restore(stream, found.ids.length, prefix))) {
      this.#live.current.restore(stream.slot!, stream.pages!.pages, found.snapshot);
      stream.proven = true;
      await this.keep(stream, "history");
    } else if (prefix) {
      // The rows of a page that isn't full need one of the stream's own.
      const needed = prefix.rows % pageRows > 0 ? 1 : 0;
      await this.#cache!.freePages(needed, prefix);
      if (this.#pages.freeCount >= needed) this.#resume(stream, prefix);
    }
    const { rows, request } = stream;
    for (const mark of request.marks ?? []) {
      if (mark.kind === "rewind" && mark.rows <= rows)
        this.#cache?.supersede(stream.ids, mark.rows);
    }
    const miss = rows > 0 ? null : this.#missOf(stream);
    // A stream that had to wait goes on from its own state: that saved nothing.
    stream.cached ??= { rows, miss };
    return true;
  }

  /**
   * Gives a stream pages for positions [0, rows).
   * @param others that have slots; those that are served after it may lose theirs
   * @returns false where the stream itself lost its slot
   */
  async grow(stream: LiveStream, rows: number, others: readonly LiveStream[]): Promise<boolean> {
    for (;;) {
      const needed = pagesFor(rows) - pagesHeld(stream);
      await this.#cache?.freePages(needed, null);
      if (stream.pages!.grow(rows)) return true;
      const rest = others.filter((each) => each !== stream && each.slot !== null);
      const holders = [stream, ...rest].sort(byTurn);
      const last = holders.at(-1)!;
      invariant(holders.length > 1, "one stream alone has no room for what it was admitted with");
      await this.park(last);
      if (last === stream) return false;
    }
  }

  /** Takes a stream's slot and pages; it waits for others, and goes on from where it is. */
  async park(stream: LiveStream): Promise<void> {
    if (stream.rows > 0) await this.keep(stream, "parked");
    this.release(stream);
    stream.phase = "waiting";
    stream.begun = false;
    stream.found = undefined;
    stream.rows = 0;
    stream.contextRows = 0;
  }

  /**
   * Caches a stream's state as it is, where the stream is one to be cached. What can't be cached is nobody's
   * error; a loss is heard of in the next round.
   */
  async keep(stream: LiveStream, kind: PrefixKind): Promise<void> {
    const cache = this.#cache;
    if (!cache || !stream.request.marks || this.#live.lost) return;
    const { ids, rows, slot, pages, proven } = stream;
    const context = this.#hasContext(stream);
    const prefix = { ids, rows, kind, context, pages: pages!.pages, proven };
    if (kind === "rewind") cache.supersede(ids, rows);
    try {
      if (cache.touch(prefix) || !(await cache.makeRoom(prefix, this.#stateBytes))) return;
      const backend = this.#live.current;
      extendContext(backend, [stream]);
      cache.add(prefix, await backend.hold(slot!));
    } catch (cause) {
      // A device that is full has no room for a cache; else nobody knows what became of the state.
      if (cause instanceof MemoryError) return;
      this.#live.note(cause);
      this.forget(stream);
    }
  }

  /** Forgets what a stream left in the cache: something went wrong with it. */
  forget({ ids }: LiveStream): void {
    this.#cache?.forget(ids);
  }

  /** Takes back what a stream has. A lost backend may never have opened its slot. */
  release(stream: LiveStream): void {
    if (stream.slot === null) return;
    if (!this.#live.lost) this.#live.current.release(stream.slot);
    this.#slots.give(stream.slot);
    stream.pages!.release();
    stream.slot = null;
    stream.pages = null;
  }

  /** After the loss of a backend: what was cached is gone with it. */
  clear(): void {
    this.#cache?.clear();
  }

  /**
   * Writes what should outlive the process, what is most likely to be used first, for as long as a stop
   * may take, and forgets everything.
   */
  async close(clock: Clock): Promise<void> {
    const endMs = clock.nowMs() + closeMsMax;
    for (const entry of this.#cache?.victims.reverse() ?? []) {
      if (clock.nowMs() < endMs) await this.#spillOut(entry, true);
    }
    this.clear();
    await this.written();
  }

  /** Resolves when what was evicted is on disk. */
  async written(): Promise<void> {
    await this.#spilling?.written();
  }

  #prefixOf(stream: LiveStream): Entry | null {
    if (!stream.request.marks) return null;
    return this.#cache?.longest(stream.ids, this.#needsContext(stream)) ?? null;
  }

  #missOf(stream: LiveStream): CacheMiss {
    if (!this.#cache || !stream.request.marks) return "off";
    return this.#cache.missOf(stream.ids, this.#needsContext(stream));
  }

  #needsContext({ drafting }: LiveStream): boolean {
    return this.#live.current.info.drafter !== null && drafting !== null;
  }

  /** Whether the drafter can go on from a stream's state. */
  #hasContext({ drafting }: LiveStream): boolean {
    return this.#live.current.info.drafter === null || drafting !== null;
  }

  /** Whether a stream has to wait for a state on disk, which is worth it. */
  #reads(stream: LiveStream, prefix: CachedPrefix | null): boolean {
    if (!this.#spill || !stream.request.marks || stream.found !== undefined) return false;
    if (this.#isOther) return false;
    const known = this.#spill.longest(stream.ids, this.#needsContext(stream));
    if (!known || known.rows < (prefix?.rows ?? 0) + spillGainRows) return false;
    stream.reading = this.#spill.read(known.name).then((found) => {
      stream.reading = null;
      // It may have lost its slot, and waits again: then what was read is old.
      if (stream.phase === "filling") stream.found = found;
    });
    return true;
  }

  /** Whether the backend was lost, and another one opened whose results may differ. */
  get #isOther(): boolean {
    return identityOf(this.#live.current.info) !== this.#identity;
  }

  async #spillOut(entry: Entry, patient: boolean): Promise<void> {
    if (!this.#spilling || this.#isOther) return;
    const bytes = entry.held.bytes + entry.pages.length * this.#pageBytes;
    await this.#spilling.add(entry, bytes, patient);
  }

  async #restore(stream: LiveStream, rows: number, spared: CachedPrefix | null): Promise<boolean> {
    await this.#cache?.freePages(pagesFor(rows), spared);
    if (!stream.pages!.grow(rows)) return false;
    stream.rows = rows;
    stream.contextRows = rows;
    return true;
  }

  #resume(stream: LiveStream, prefix: Entry): void {
    const backend = this.#live.current;
    const copy = stream.pages!.adopt(prefix.pages, prefix.rows);
    if (copy) backend.copyPage(copy.from, copy.to);
    backend.resume(stream.slot!, prefix.held);
    this.#cache!.use(prefix);
    stream.rows = prefix.rows;
    stream.contextRows = prefix.rows;
    stream.proven = prefix.kind !== "shared";
  }
}

const pagesHeld = ({ pages }: LiveStream): number => pages?.pages.length ?? 0;

/** What a stream is promised: its tokens, and some growth. */
const pagesWanted = ({ ids, pagesMost }: LiveStream): number =>
  Math.min(pagesFor(ids.length + growthRows), pagesMost);
