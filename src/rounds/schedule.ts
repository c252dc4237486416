import { type LiveStream, onlyWarms } from "./live-stream.ts";

/** A prompt that others with less left were given so many chunks before has the next. */
const passesOverMost = 8;

/** For how long a background request yields to others. */
const yieldsMsMost = 60_000;

/** Lets background requests that have yielded for long be served as all others. */
export function promote(streams: readonly LiveStream[], nowMs: number): void {
  for (const stream of streams) {
    // A pass that only warms the cache has nobody who waits for it.
    if (!onlyWarms(stream.request) && nowMs - stream.atMs > yieldsMsMost) stream.promoted = true;
  }
}

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
  const filling = fillable(streams);
  const starved = filling.find(({ passedOver }) => passedOver >= passesOverMost);
  if (starved) return starved;
  return filling.reduce<LiveStream | null>(
    (least, stream) => (least && least.toFill <= stream.toFill ? least : stream),
    null,
  );
}

/** Notes who was given a chunk, and who could have had it. */
export function passOver(streams: readonly LiveStream[], chosen: LiveStream): void {
  for (const stream of fillable(streams)) {
    stream.passedOver = stream === chosen ? 0 : stream.passedOver + 1;
  }
}

const fillable = (streams: readonly LiveStream[]): LiveStream[] =>
  streams.filter(({ phase, reading }) => phase === "filling" && !reading).sort(byTurn);
