import { invariant } from "../errors.ts";
import { type PageId, pageId } from "../ids.ts";
import { pageRows } from "../limits.ts";

/** Pages that hold so many positions. */
export const pagesFor = (rows: number): number => Math.ceil(rows / pageRows);

/**
 * Which KV pages are taken, and by how many holders: streams and cached prefixes share the pages of
 * a common beginning. A page's rows are written once, by the one holder that took the page.
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

  /** How many hold a page; 0: it is free. */
  holders(page: PageId): number {
    return this.#holders[page]!;
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

/** A page whose rows another page is to begin with. */
export interface PageCopy {
  readonly from: PageId;
  readonly to: PageId;
}

/** The pages of one stream, in the order of their positions. */
export class PageTable {
  readonly pages: PageId[] = [];
  readonly #pool: PagePool;

  constructor(pool: PagePool) {
    this.#pool = pool;
  }

  /**
   * Begins an empty table with the first `rows` of another's pages. Full ones are shared; one that isn't
   * may still be written by the holder that took it, so that its rows are to be copied to an own one.
   */
  adopt(pages: readonly PageId[], rows: number): PageCopy | null {
    invariant(this.pages.length === 0, "a table that adopts pages has none");
    const full = Math.floor(rows / pageRows);
    for (const page of pages.slice(0, full)) {
      this.#pool.share(page);
      this.pages.push(page);
    }
    if (rows % pageRows === 0) return null;
    const to = this.#pool.take();
    invariant(to !== null, "no page for the rows of a shared one");
    this.pages.push(to);
    return { from: pages[full]!, to };
  }

  /** Holds pages for positions [0, rows). False where the pool ran out; then nothing was taken. */
  grow(rows: number): boolean {
    const needed = pagesFor(rows) - this.pages.length;
    if (needed > this.#pool.freeCount) return false;
    for (let count = 0; count < needed; count++) this.pages.push(this.#pool.take()!);
    return true;
  }

  release(): void {
    for (const page of this.pages) this.#pool.give(page);
    this.pages.length = 0;
  }
}
