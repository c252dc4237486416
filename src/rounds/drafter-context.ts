import type { Backend } from "../backend/backend.ts";
import { type DrafterShape, featureRowsOf } from "../model/drafter-shape.ts";
import { planPass, type SegmentRequest } from "../model/plan.ts";
import type { LiveStream } from "./live-stream.ts";
import { streamSegment } from "./stream-segment.ts";

/**
 * Before streams are fed: gives the drafter what their slots could not hold any longer. What waits
 * is cheaper to give later, many rows at once.
 * @param rows that each stream is fed next
 */
export function makeRoom(
  backend: Backend,
  streams: readonly LiveStream[],
  rows: (stream: LiveStream) => number,
): void {
  const room = featureRowsOf(backend.info.rowsMax);
  extendContext(
    backend,
    streams.filter((stream) => stream.rows - stream.contextRows + rows(stream) > room),
  );
}

/** Gives the drafter every row that these streams have been fed. */
export function extendContext(backend: Backend, streams: readonly LiveStream[]): void {
  if (!backend.info.drafter) return;
  let segments: SegmentRequest[] = [];
  let rows = 0;
  const give = () => {
    if (segments.length > 0) backend.extend(planPass(segments));
    segments = [];
    rows = 0;
  };
  for (const stream of streams) {
    if (!stream.drafting) continue;
    while (stream.contextRows < stream.rows) {
      if (rows === backend.info.rowsMax) give();
      const count = Math.min(stream.rows - stream.contextRows, backend.info.rowsMax - rows);
      segments.push(streamSegment(stream, stream.contextRows, new Array<number>(count).fill(0)));
      stream.contextRows += count;
      rows += count;
    }
  }
  give();
}

/** A block [anchor, mask, …] behind a stream's context, which draws every row but the first. */
export function blockSegment(
  stream: LiveStream,
  { blockRows, maskId, candidates }: DrafterShape,
): SegmentRequest {
  const ids = [stream.pending, ...new Array<number>(blockRows - 1).fill(maskId)];
  return { ...streamSegment(stream, stream.rows, ids), draw: "block", candidates };
}
