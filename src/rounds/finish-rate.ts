/** Ends that tell how fast requests are served. */
const remembered = 16;
/** What a client is told at most: by then it has given up, or the rate is another. */
const secondsMost = 60;

/** How often requests end while there are any, for those who ask when to come again. */
export class FinishRate {
  /** In ms of being busy: what was idle says nothing of how long requests take. */
  readonly #endsMs: number[] = [];
  #busyMs = 0;
  #sinceMs: number | null = null;

  /** Somebody is served from now on. */
  begin(nowMs: number): void {
    this.#sinceMs = nowMs;
  }

  /** Nobody is served from now on. */
  idle(nowMs: number): void {
    this.#busyMs = this.#at(nowMs);
    this.#sinceMs = null;
  }

  /** A request has ended. */
  add(nowMs: number): void {
    this.#endsMs.push(this.#at(nowMs));
    if (this.#endsMs.length > remembered) this.#endsMs.shift();
  }

  /** Whole seconds from one end to the next, at least 1; null before there were two. */
  get secondsEach(): number | null {
    const [first] = this.#endsMs;
    const last = this.#endsMs.at(-1);
    if (first === undefined || last === undefined || this.#endsMs.length < 2) return null;
    const each = (last - first) / (this.#endsMs.length - 1) / 1000;
    return Math.min(secondsMost, Math.max(1, Math.ceil(each)));
  }

  #at(nowMs: number): number {
    return this.#sinceMs === null ? this.#busyMs : this.#busyMs + nowMs - this.#sinceMs;
  }
}
