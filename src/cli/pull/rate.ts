import { systemClock } from "../../clock.ts";
import { bytesText } from "../format.ts";

/** The rate is that of the last so many seconds, or up to twice as many. */
const spanMs = 5000;

/** How fast something comes, and when it will be there. */
export class Rate {
  readonly #total: number;
  /** Two moments: the earlier is what the rate counts from. */
  #earlier: Moment;
  #later: Moment;
  #bytes: number;

  /** @param bytes that are there already */
  constructor(bytes: number, total: number) {
    this.#total = total;
    this.#bytes = bytes;
    this.#earlier = { ms: systemClock.nowMs(), bytes };
    this.#later = this.#earlier;
  }

  reached(bytes: number): void {
    this.#bytes = bytes;
    const ms = systemClock.nowMs();
    if (ms - this.#later.ms < spanMs) return;
    this.#earlier = this.#later;
    this.#later = { ms, bytes };
  }

  /** Such as "1.2 GiB of 2.7 GiB, 11.3 MiB/s, 2 min left". */
  text(): string {
    const ms = systemClock.nowMs() - this.#earlier.ms;
    const perSecond = (1000 * (this.#bytes - this.#earlier.bytes)) / ms;
    const done = `${bytesText(this.#bytes)} of ${bytesText(this.#total)}`;
    if (!(perSecond > 0)) return done;
    const left = timeText((this.#total - this.#bytes) / perSecond);
    return `${done}, ${bytesText(perSecond)}/s, ${left} left`;
  }
}

interface Moment {
  readonly ms: number;
  readonly bytes: number;
}

/** Seconds for people: 45 s, 3 min, 2 h 5 min. */
function timeText(seconds: number): string {
  if (seconds < 60) return `${Math.ceil(seconds)} s`;
  const minutes = Math.ceil(seconds / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
