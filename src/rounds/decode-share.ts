import type { Clock } from "../clock.ts";

/**
 * Divides the time between replies and prompts. A chunk of a prompt takes as long as many rounds of the
 * replies: after it, these have their share before the next. Times decide the order of passes alone.
 */
export class DecodeShare {
  readonly #share: number;
  /** ms that the replies have yet to get for the chunks so far. */
  #owedMs = 0;

  /** @param share of the time that replies have, from 0 to below 1 */
  constructor(share: number) {
    this.#share = share;
  }

  /** Whether a prompt may have the next chunk. */
  get fillDue(): boolean {
    return this.#owedMs <= 0;
  }

  /**
   * Waits for the passes of a round, which run one after the other.
   * @returns what they return, null for none
   */
  async wait<T>(
    clock: Clock,
    fill: Promise<T> | null,
    decode: Promise<T> | null,
  ): Promise<readonly T[]> {
    const startMs = clock.nowMs();
    const filled = fill && (await fill);
    const filledMs = clock.nowMs();
    const decoded = decode && (await decode);
    if (!decode) {
      this.#owedMs = 0;
    } else {
      if (fill) this.#owedMs += ((filledMs - startMs) * this.#share) / (1 - this.#share);
      this.#owedMs = Math.max(0, this.#owedMs - (clock.nowMs() - filledMs));
    }
    return [filled, decoded].filter((ends) => ends !== null);
  }
}
