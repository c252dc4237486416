import type { Backend, Snapshot } from "../../backend/backend.ts";
import { type PageId, pageId, type SlotId, slotId, type TokenId } from "../../ids.ts";
import { pageRows } from "../../limits.ts";
import { planPass } from "../../model/plan.ts";
import { pagesFor } from "../../state/kv-pages.ts";
import type { ViewSizes } from "./backend-view.ts";
import { poisoned } from "./rows.ts";

/** Where a reply may leave something behind: its places begin behind the prompt. */
interface Place {
  readonly promptIds: readonly TokenId[];
  readonly maxTokens: number;
}

/**
 * Fills the slots and pages of a backend with NaN. The same reply comes again and again: what one run
 * forgets to write, the last must not have left.
 */
export class NanMemory {
  readonly #backend: Backend;
  /** What a slot and its share of the pages begin with, by how many pages these are. */
  readonly #nan = new Map<number, Snapshot>();

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  /**
   * Fills slots and, divided equally among them, pages. None of the slots may be open.
   * @param places of replies that come next, by slot: features are spoilt there
   */
  async fill({ slots, pages }: ViewSizes, places: readonly Place[]): Promise<void> {
    const each = Math.floor(pages / slots);
    const nan = this.#nan.get(each) ?? (await this.#poison(each));
    this.#nan.set(each, nan);
    for (let at = 0; at < slots; at++) {
      const slot = slotId(at);
      this.#backend.open(slot);
      this.#backend.restore(slot, pagesFrom(at * each, each), nan);
      const place = places[at];
      if (place && this.#backend.info.drafter) await this.#fillFeatures(slot, place);
      this.#backend.release(slot);
    }
  }

  /** Features are in no snapshot: rows behind a state of NaN leave NaN in the reply's places. */
  async #fillFeatures(slot: SlotId, { promptIds, maxTokens }: Place): Promise<void> {
    const rows = Math.min(maxTokens, this.#backend.info.rowsMax);
    const ids = new Array<TokenId>(rows).fill(0);
    const start = promptIds.length;
    // Whoever's they are: they hold NaN, or will.
    const pages = pagesFrom(0, pagesFor(start + rows));
    const slots = { stateSlot: slot, nextSlot: slot };
    const plan = planPass([{ ids, start, ...slots, pages, draw: "none", candidates: 0 }]);
    await this.#backend.read(this.#backend.prefill(plan));
  }

  async #poison(pages: number): Promise<Snapshot> {
    this.#backend.open(slotId(0));
    const rows = pages * pageRows;
    const snapshot = await this.#backend.save(slotId(0), pagesFrom(0, pages), rows);
    this.#backend.release(slotId(0));
    return poisoned(snapshot);
  }
}

const pagesFrom = (first: number, count: number): PageId[] =>
  Array.from({ length: count }, (_, page) => pageId(first + page));
