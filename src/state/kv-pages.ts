import { invariant } from "../errors.ts";
import { type PageId, pageId } from "../ids.ts";
import { pageRows } from "../limits.ts";

/**
 * Which KV pages are taken, and by how many holders: streams and cached prefixes share the pages of
 * a common beginning. A page is written only by a holder that has it alone.
 */
export class PagePool {
  readonly #holders: Uint32Array;
  readonly #free: number[];

  constructor(pages: number) {
    this.#holders = new Uint32Array(pages);
    this.#free = Array.from({ length: pages }, (_, index) => pages - 1 - index);
  }

  get freeCount(): number {
    return this.#free.length;
  }

  /** Null where every page is taken. */
  take(): PageId | null {
    const index = this.#free.pop();
    if (index === undefined) return null;
    this.#holders[index] = 1;
    return pageId(index);
  }

  /** One more holder. */
  share(page: PageId): void {
    invariant(this.#holders[page]! > 0, `page ${page} is free and can't be shared`);
    this.#holders[page] = this.#holders[page]! + 1;
  }

  /** One holder fewer; the last one frees the page. */
  give(page: PageId): void {
    const holders = this.#holders[page]!;
    invariant(holders > 0, `page ${page} was given back twice`);
    this.#holders[page] = holders - 1;
    if (holders === 1) this.#free.push(page);
  }
}

/** The pages of one stream, in the order of their positions. */
export class PageTable {
  readonly pages: PageId[] = [];
  readonly #pool: PagePool;

  constructor(pool: PagePool) {
    this.#pool = pool;
  }

  /** Holds pages for positions [0, rows). False where the pool ran out; then nothing was taken. */
  grow(rows: number): boolean {
    const needed = Math.ceil(rows / pageRows) - this.pages.length;
    if (needed > this.#pool.freeCount) return false;
    for (let count = 0; count < needed; count++) this.pages.push(this.#pool.take()!);
    return true;
  }

  release(): void {
    for (const page of this.pages) this.#pool.give(page);
    this.pages.length = 0;
  }
}
