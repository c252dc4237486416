import { NonFiniteLogitsError } from "../../errors.ts";
import type { Position } from "../../ids.ts";
import type { Plan } from "../../model/plan.ts";
import type { Candidates } from "../candidates.ts";

/** Candidates that a draw can take from the device; who asks for more gets the whole row read. */
const candidatesMax = 64;

/** How many of a draw's candidates the device selects; 0 where the whole row is read. */
export const topOf = (candidates: number): number => (candidates <= candidatesMax ? candidates : 0);

/** The most candidates that the device selects for a draw of the plan. */
export const topOfPlan = (plan: Plan): number =>
  plan.draws.reduce((most, draw) => Math.max(most, topOf(draw.candidates)), 0);

/** How `kernels/topk_slice.wgsl` cuts a row: 256 threads of `items` logits, and 256 slices at most. */
export function topkSlices(vocabSize: number): {
  readonly items: number;
  readonly slices: number;
} {
  const items = Math.max(16, Math.ceil(vocabSize / 65_536));
  return { items, slices: Math.ceil(vocabSize / (256 * items)) };
}

/** Words of the results of a pass, and of its slices' candidates, at most. */
export function topkWords(
  vocabSize: number,
  drawsMax: number,
): { readonly results: number; readonly pairs: number } {
  const results = 2 * (candidatesMax + 1) * drawsMax;
  return { results, pairs: results * topkSlices(vocabSize).slices };
}

/** A draw's candidates from the words that `kernels/topk.wgsl` wrote for it. */
export function selectedOf(
  record: Float32Array,
  count: number,
  position: Position,
): Candidates | NonFiniteLogitsError {
  const words = new Uint32Array(record.buffer, record.byteOffset, record.length);
  if (words[0] === 0) return new NonFiniteLogitsError(position);
  const ids = new Int32Array(count);
  const logits = new Float32Array(count);
  for (let at = 0; at < count; at++) {
    ids[at] = words[2 + 2 * at]!;
    logits[at] = record[3 + 2 * at]!;
  }
  return { ids, logits };
}
