import { NonFiniteLogitsError } from "../errors.ts";
import type { Position, SlotId } from "../ids.ts";
import { drawPosition, type Plan, segmentOf } from "../model/plan.ts";
import { type Candidates, orderCandidates, selectMax } from "./candidates.ts";

export type DrawResult = Candidates | NonFiniteLogitsError;

/**
 * Draws that are made when they are first looked at: to order a whole row takes long, and a window's
 * rows behind a wrong draft are never looked at.
 */
export function lazyDraws(makers: readonly (() => DrawResult)[]): readonly DrawResult[] {
  const draws: DrawResult[] = [];
  makers.forEach((make, index) => {
    const found = (value: DrawResult) =>
      Object.defineProperty(draws, index, { value, enumerable: true });
    Object.defineProperty(draws, index, {
      configurable: true,
      enumerable: true,
      get: () => found(make())[index],
    });
  });
  return draws;
}

/**
 * The candidates of every draw of a plan, from logits in this machine's memory. Rows that a chain's slot
 * is to keep are copied into `kept`; a window's wait for its keep.
 */
export function drawCandidates(
  plan: Plan,
  logitsOf: (draw: number) => Float32Array,
  kept: Map<SlotId, Float32Array>,
): readonly DrawResult[] {
  // A state that moves on leaves the row that it kept behind; a window's moves at its keep.
  for (const { nextSlot, window } of plan.segments) if (!window) kept.delete(nextSlot);
  const makers = plan.draws.map((draw, index) => {
    const logits = logitsOf(index);
    const { window, nextSlot } = segmentOf(plan, draw.row);
    if (draw.keepLogits && !window) kept.set(nextSlot, logits.slice());
    return maker(logits, draw.candidates, drawPosition(plan, draw.row));
  });
  return lazyDraws(makers);
}

/** Few candidates are chosen at once, while the logits are there; for more, the row is copied. */
function maker(logits: Float32Array, count: number, position: Position): () => DrawResult {
  if (count > 0 && count <= selectMax) {
    const result = orderedOrNot(logits, count, position);
    return () => result;
  }
  const row = logits.slice();
  return () => orderedOrNot(row, count, position);
}

/** The candidates of a draft's draws: a row of a block predicts the token of its own position. */
export function draftCandidates(
  plan: Plan,
  logitsOf: (draw: number) => Float32Array,
): readonly DrawResult[] {
  return plan.draws.map(({ row, candidates }, index) =>
    orderedOrNot(logitsOf(index), candidates, drawPosition(plan, row) - 1),
  );
}

/** What a slot keeps after a restore: the snapshot's row, or none. */
export function keepLogits(
  kept: Map<SlotId, Float32Array>,
  slot: SlotId,
  logits: Float32Array | null,
): void {
  if (logits) kept.set(slot, logits);
  else kept.delete(slot);
}

/** A row's candidates, or why it has none: a row that isn't finite fails alone. */
export function orderedOrNot(row: Float32Array, count: number, position: Position): DrawResult {
  try {
    return orderCandidates(row, count, position);
  } catch (error) {
    if (error instanceof NonFiniteLogitsError) return error;
    throw error;
  }
}
