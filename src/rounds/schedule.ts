import type { LiveStream } from "./live-stream.ts";

/** What the next round does, in this order. */
export interface Schedule {
  readonly cancelled: readonly LiveStream[];
  readonly admitted: readonly LiveStream[];
  /** The stream whose prompt gets one chunk. */
  readonly filling: LiveStream | null;
  /** The streams that share the decode pass. */
  readonly decoding: readonly LiveStream[];
}

/**
 * Decides one round: cancels, then admissions in order of arrival, then one prompt chunk for the
 * filling stream with the fewest tokens left (ties: the first to arrive), then every decoding stream.
 * @param streams all streams that aren't done, in order of arrival
 * @param freeSlots slots free before the cancelled streams give theirs back
 */
export function schedule(streams: readonly LiveStream[], freeSlots: number): Schedule {
  const cancelled = streams.filter((stream) => stream.cancelled);
  const rest = streams.filter((stream) => !stream.cancelled);
  const slots = freeSlots + cancelled.filter((stream) => stream.slot !== null).length;
  const admitted = rest.filter((stream) => stream.phase === "waiting").slice(0, slots);
  const fillable = rest.filter((stream) => stream.phase === "filling" || admitted.includes(stream));
  const filling = fillable.reduce<LiveStream | null>(
    (least, stream) => (least && least.promptLeft <= stream.promptLeft ? least : stream),
    null,
  );
  const decoding = rest.filter((stream) => stream.phase === "decoding");
  return { cancelled, admitted, filling, decoding };
}
