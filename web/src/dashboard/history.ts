import { type Poll, type Reading, readingOf } from "./readings.ts";

/** Readings that are kept: ten minutes of one a second. */
const readingsMax = 600;

/** The latest readings, the oldest first. */
export class History {
  #readings: readonly Reading[] = [];
  #last: Poll | null = null;

  get readings(): readonly Reading[] {
    return this.#readings;
  }

  add(poll: Poll): void {
    const reading = readingOf(this.#last, poll);
    this.#last = poll;
    this.#readings = [...this.#readings, reading].slice(-readingsMax);
  }

  /** The next reading has none before it: what happened in between would look like one moment. */
  pause(): void {
    this.#last = null;
  }
}
