import { invariant } from "../errors.ts";
import type { SegmentRequest } from "../model/plan.ts";
import type { LiveStream } from "./live-stream.ts";

/** Rows of a stream from a place on, none of which draws. */
export function streamSegment(
  { slot, pages }: LiveStream,
  start: number,
  ids: readonly number[],
): SegmentRequest {
  invariant(slot !== null && pages !== null, "a stream without a slot in a round");
  return {
    ids,
    start,
    stateSlot: slot,
    nextSlot: slot,
    pages: pages.pages,
    draw: "none",
    candidates: 0,
  };
}
