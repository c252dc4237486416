import { type PageId, pageId, slotId, type TokenId } from "../ids.ts";
import { planPass, type SegmentRequest } from "../model/plan.ts";
import { stateFingerprint } from "../state/fingerprint.ts";
import type { Weights } from "../weights/weights.ts";
import type { Backend, BackendOptions } from "./backend.ts";

/** What an implementation gives the shared suite. */
export interface BackendUnderTest {
  readonly name: string;
  open(sizes: Omit<BackendOptions, "weights" | "taps">): Promise<Backend>;
  /** Opens one of the weights that `change` makes of its own; absent where it has none. */
  openChanged?(
    sizes: Omit<BackendOptions, "weights" | "taps">,
    change: (weights: Weights) => Weights,
  ): Promise<Backend>;
}

/** Sizes of the backends that the suite opens. */
export const sizes = { slots: 3, pages: 12, rowsMax: 64, drawsMax: 8 };
/** Four pages of a slot's own. */
export const pagesOf = (slot: number): PageId[] =>
  [0, 1, 2, 3].map((index) => pageId(slot * 4 + index));

export const prompt: readonly TokenId[] = Array.from(
  { length: 150 },
  (_, i) => (i * 53 + 11) % 300,
);

/** Rows of a slot from position `start` on, drawing the last. */
export function segment(
  slot: number,
  start: number,
  ids: readonly TokenId[],
  changes: Partial<SegmentRequest> = {},
): SegmentRequest {
  return {
    ids,
    start,
    stateSlot: slotId(slot),
    nextSlot: slotId(slot),
    pages: pagesOf(slot),
    draw: "last",
    candidates: 5,
    keepLogits: true,
    ...changes,
  };
}

/** Feeds ids from position 0 in chunks; returns the state's fingerprint. */
export async function feed(
  backend: Backend,
  slot: number,
  ids: readonly TokenId[],
  chunk: number,
): Promise<string> {
  for (let at = 0; at < ids.length; at += chunk) {
    const plan = planPass([segment(slot, at, ids.slice(at, at + chunk))]);
    await backend.read(backend.prefill(plan));
  }
  return await printOf(backend, slot, ids.length);
}

/** A slot's state, history, KV of the first `rows` positions and kept logits, as one word. */
export async function printOf(backend: Backend, slot: number, rows: number): Promise<string> {
  return stateFingerprint(await backend.save(slotId(slot), pagesOf(slot), rows));
}

/** Numbers in [0, 1) from a seed (mulberry32). */
export function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
