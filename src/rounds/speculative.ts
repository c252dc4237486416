/** What drafting did for a reply. */
export interface SpeculativeCounts {
  /** Passes after the prompt's. */
  readonly rounds: number;
  /** Tokens proposed, and those of them that the reply has. */
  readonly drafted: number;
  readonly accepted: number;
  /** Reply tokens after the first, a round; null before the first round. */
  readonly tokensPerRound: number | null;
  readonly byDrafter: Readonly<Record<string, DrafterCounts>>;
}

export interface DrafterCounts {
  readonly rounds: number;
  readonly drafted: number;
  readonly accepted: number;
}

/** Adds up a stream's rounds. */
export class SpeculativeCounter {
  #rounds = 0;
  #tokens = 0;
  #drafted = 0;
  #accepted = 0;
  readonly #drafters = new Map<string, { rounds: number; drafted: number; accepted: number }>();

  /** A round that brought `tokens`; `drafter` proposed where there was a proposal. */
  add(tokens: number, drafter: string | null, drafted: number, accepted: number): void {
    this.#rounds++;
    this.#tokens += tokens;
    if (drafter === null) return;
    this.#drafted += drafted;
    this.#accepted += accepted;
    const counts = this.#drafters.get(drafter) ?? { rounds: 0, drafted: 0, accepted: 0 };
    counts.rounds++;
    counts.drafted += drafted;
    counts.accepted += accepted;
    this.#drafters.set(drafter, counts);
  }

  get drafted(): number {
    return this.#drafted;
  }

  get accepted(): number {
    return this.#accepted;
  }

  get counts(): SpeculativeCounts {
    return {
      rounds: this.#rounds,
      drafted: this.#drafted,
      accepted: this.#accepted,
      tokensPerRound: this.#rounds === 0 ? null : this.#tokens / this.#rounds,
      byDrafter: Object.fromEntries(
        [...this.#drafters].map(([name, counts]) => [name, { ...counts }]),
      ),
    };
  }
}
