import { Acceptance, type Prior } from "./acceptance.ts";

/**
 * Rounds without a drafter that lost against plain decoding, until it is tried again. They double, and
 * begin anew where drafting wins and has paid for what it lost.
 */
const pauseRoundsFirst = 16;
const pauseRoundsMax = 512;

/** A window that a drafter could fill. */
export interface Option {
  readonly drafts: number;
  /** The time of the round, in plain decode passes. */
  readonly passes: number;
  /** Tokens that it should bring in the time of a plain pass; plain decoding brings 1. */
  readonly rate: number;
}

/** One drafter in one stream: how its drafts land, and whether it is worth asking. */
export class Trial {
  readonly acceptance: Acceptance;
  #pauseLeft = 0;
  #pauseNext = pauseRoundsFirst;
  /**
   * The next round is drafted even at an expected loss: after a pause, to learn whether the text has
   * changed; and after a round that won, because easy text goes on.
   */
  #probing = true;

  constructor(prior: Prior) {
    this.acceptance = new Acceptance(prior);
  }

  /**
   * The window with the best rate, or null: none, or not in this round. To be asked once a round.
   * @param draftsMost what the drafter has and the window holds
   * @param passesOf the time of a round with so many drafts
   * @param passesMost options that take longer are none
   * @param even whether drafting as a whole has lost nothing
   */
  option(
    draftsMost: number,
    passesOf: (drafts: number) => number,
    passesMost: number,
    even: boolean,
  ): Option | null {
    if (this.#pauseLeft > 0) {
      this.#pauseLeft--;
      return null;
    }
    let best: Option | null = null;
    for (let drafts = 1; drafts <= draftsMost; drafts++) {
      const passes = passesOf(drafts);
      const rate = this.acceptance.expectedTokens(drafts) / passes;
      if (passes <= passesMost && rate > (best?.rate ?? 0)) best = { drafts, passes, rate };
    }
    if (best === null) return null;
    if (best.rate > 1 && even) this.#pauseNext = pauseRoundsFirst;
    if (best.rate > 1 || this.#probing) return best;
    // This round is the first of the pause.
    this.#pauseLeft = this.#pauseNext - 1;
    this.#pauseNext = Math.min(2 * this.#pauseNext, pauseRoundsMax);
    this.#probing = true;
    return null;
  }

  /** What came of a round in which the option was taken. */
  ended(passes: number, tokens: number): void {
    this.#probing = tokens > passes;
  }
}
