import type { LiveStream } from "./live-stream.ts";

/** A prompt that others with less left were given so many chunks before has the next. */
const passesOverMost = 8;

/** Streams in the order in which they are served: background ones last, and the first to come first. */
export function byTurn(a: LiveStream, b: LiveStream): number {
  return Number(a.background) - Number(b.background) || a.id - b.id;
}

/** Background streams that hold a slot while a foreground one is there. */
export function toYield(streams: readonly LiveStream[]): LiveStream[] {
  if (!streams.some((stream) => !stream.background)) return [];
  return streams.filter((stream) => stream.background && stream.slot !== null);
}

/** Who may be given a slot next; null: nobody waits, or only background streams beside others. */
export function nextToAdmit(streams: readonly LiveStream[]): LiveStream | null {
  const [first] = streams.filter(({ phase }) => phase === "waiting").sort(byTurn);
  if (!first) return null;
  return first.background && streams.some((stream) => !stream.background) ? null : first;
}

/**
 * Whose prompt gets the next chunk: the one with the fewest tokens left, so that short ones needn't wait
 * for long ones; the first to come among equals. One that was passed over for long goes first.
 */
export function nextToFill(streams: readonly LiveStream[]): LiveStream | null {
  const filling = streams
    .filter(({ phase, reading }) => phase === "filling" && !reading)
    .sort(byTurn);
  const starved = filling.find(({ passedOver }) => passedOver >= passesOverMost);
  const chosen =
    starved ??
    filling.reduce<LiveStream | null>(
      (least, stream) => (least && least.toFill <= stream.toFill ? least : stream),
      null,
    );
  for (const stream of filling) stream.passedOver = stream === chosen ? 0 : stream.passedOver + 1;
  return chosen;
}
