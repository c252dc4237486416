/** Plain decode passes that drafting may lose before it has shown anything. */
const startPasses = 6;
/** The share of a stream's plain time that it may lose on top. */
const share = 0.007;

/**
 * What drafting may still lose in one stream, counted in plain decode passes (one token each). A round is
 * only drafted where the budget bears that none of its drafts lands, so a reply never takes more than
 * 1.007 · tokens + 6 passes' time, however its drafts land: within 3 % of plain from 256 tokens on.
 */
export class LossBudget {
  #tokens = 0;
  /** Lost so far; gains pay it off, but nothing is saved up for worse times. */
  #lost = 0;

  /** The most passes that the next round may take. */
  get passesMost(): number {
    return 1 + startPasses + share * this.#tokens - this.#lost;
  }

  /** Whether drafting has paid for all that it took. */
  get even(): boolean {
    return this.#lost === 0;
  }

  /** A round that took the time of so many plain passes and brought so many tokens. */
  settle(passes: number, tokens: number): void {
    this.#tokens += tokens;
    this.#lost = Math.max(0, this.#lost + passes - tokens);
  }
}
