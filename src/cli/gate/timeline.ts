import type { Backend, PassResult, Snapshot } from "../../backend/backend.ts";
import type { Candidates } from "../../backend/candidates.ts";
import { type PageId, pageId, type SlotId, slotId, type TokenId } from "../../ids.ts";
import { planPass, type SegmentRequest } from "../../model/plan.ts";
import { stateFingerprint } from "../../state/fingerprint.ts";

/** A stream driven by hand: one slot with pages of its own, fed rows as a gate wants them. */
export class Timeline {
  readonly #backend: Backend;
  readonly #pages: readonly PageId[];
  slot: SlotId;
  rows = 0;

  /** Takes slot `slot`, and the `slot`-th share of `pagesEach` pages. */
  constructor(backend: Backend, slot: number, pagesEach: number) {
    this.#backend = backend;
    this.slot = slotId(slot);
    this.#pages = Array.from({ length: pagesEach }, (_, index) => pageId(slot * pagesEach + index));
    backend.open(this.slot);
  }

  /** The segment that feeds `ids` next, drawing the last row; `moveTo` sends the state elsewhere. */
  segment(ids: readonly TokenId[], candidates: number, moveTo: SlotId = this.slot): SegmentRequest {
    return {
      ids,
      start: this.rows,
      stateSlot: this.slot,
      nextSlot: moveTo,
      pages: this.#pages,
      draw: "last",
      candidates,
      keepLogits: true,
    };
  }

  /** Feeds `ids` in a pass of their own. */
  async feed(ids: readonly TokenId[], candidates = 1, moveTo?: SlotId): Promise<PassResult> {
    const plan = planPass([this.segment(ids, candidates, moveTo)]);
    const result = await this.#backend.read(this.#backend.prefill(plan));
    this.advance(ids.length, moveTo);
    return result;
  }

  /** Feeds `ids` in chunks of at most `chunk` rows. */
  async feedChunks(ids: readonly TokenId[], chunk: number): Promise<void> {
    for (let at = 0; at < ids.length; at += chunk) await this.feed(ids.slice(at, at + chunk));
  }

  /** Tells the timeline that `rows` of it were fed in a pass that the caller made. */
  advance(rows: number, moveTo: SlotId = this.slot): void {
    this.rows += rows;
    this.slot = moveTo;
  }

  save(): Promise<Snapshot> {
    return this.#backend.save(this.slot, this.#pages, this.rows);
  }

  restore(snapshot: Snapshot): void {
    this.#backend.restore(this.slot, this.#pages, snapshot);
    this.rows = snapshot.rows;
  }

  /** Of the state, history, visible KV and the last row's logits. */
  async fingerprint(): Promise<string> {
    return stateFingerprint(await this.save());
  }

  close(): void {
    this.#backend.release(this.slot);
  }
}

/** A draw's candidates; a row that isn't finite throws. */
export function candidatesOf(result: PassResult, draw = 0): Candidates {
  const candidates = result.draws[draw]!;
  if (candidates instanceof Error) throw candidates;
  return candidates;
}

/** Gives a number from 0 on, below its argument. */
export type Random = (below: number) => number;

/** A small seeded generator (mulberry32) for token ids and orders. */
export function randomInts(seed: number): Random {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t = (t + Math.imul(t ^ (t >>> 7), t | 61)) ^ t;
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * below);
  };
}

/** The same items in another order. */
export function shuffled<T>(items: readonly T[], random: Random): T[] {
  const order = [...items];
  for (let last = order.length - 1; last > 0; last--) {
    const other = random(last + 1);
    [order[last], order[other]] = [order[other]!, order[last]!];
  }
  return order;
}
