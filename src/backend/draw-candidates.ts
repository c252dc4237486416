import { NonFiniteLogitsError } from "../errors.ts";
import type { SlotId } from "../ids.ts";
import { drawPosition, type Plan } from "../model/plan.ts";
import { type Candidates, orderCandidates } from "./candidates.ts";

/**
 * The candidates of every draw of a plan, from logits in this machine's memory. Rows that a slot is to
 * keep are copied into `kept`.
 */
export function drawCandidates(
  plan: Plan,
  logitsOf: (draw: number) => Float32Array,
  kept: Map<SlotId, Float32Array>,
): (Candidates | NonFiniteLogitsError)[] {
  // A state that moves on leaves the row that it kept behind.
  for (const { nextSlot } of plan.segments) kept.delete(nextSlot);
  return plan.draws.map((draw, index) => {
    const segment = plan.segments.find((part) => draw.row < part.firstRow + part.rows)!;
    const logits = logitsOf(index);
    if (draw.keepLogits) kept.set(segment.nextSlot, logits.slice());
    try {
      return orderCandidates(logits, draw.candidates, drawPosition(plan, draw.row));
    } catch (error) {
      if (error instanceof NonFiniteLogitsError) return error;
      throw error;
    }
  });
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
