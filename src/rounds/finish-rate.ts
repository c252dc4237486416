/** Ends that tell how fast requests are served. */
const remembered = 16;
/** What a client is told at most: by then it has given up, or the rate is another. */
const secondsMost = 60;

/** How often requests end, for those who ask when to come again. */
export class FinishRate {
  readonly #endsMs: number[] = [];

  add(nowMs: number): void {
    this.#endsMs.push(nowMs);
    if (this.#endsMs.length > remembered) this.#endsMs.shift();
  }

  /** Nobody is served any more: what comes next has nothing to do with it. */
  reset(): void {
    this.#endsMs.length = 0;
  }

  /** Whole seconds from one end to the next, at least 1; null before there were two. */
  get secondsEach(): number | null {
    const [first] = this.#endsMs;
    const last = this.#endsMs.at(-1);
    if (first === undefined || last === undefined || this.#endsMs.length < 2) return null;
    const each = (last - first) / (this.#endsMs.length - 1) / 1000;
    return Math.min(secondsMost, Math.max(1, Math.ceil(each)));
  }
}
