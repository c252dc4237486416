import type { Drafting, DraftWish } from "../draft/drafting.ts";
import type { Lattice } from "../draft/lattice.ts";
import type { Proposal } from "../draft/proposal.ts";
import type { TokenId } from "../ids.ts";

/**
 * Proposes whatever comes into its head: nothing, blocks of the model's, the right tokens up to a wrong
 * one, nonsense, chains and trees of any form.
 * @param truth what the stream's prompt and reply will be, as far as that is known
 */
export class WildDrafting implements Drafting {
  readonly #random: (below: number) => number;
  readonly #truth: readonly TokenId[];
  readonly #vocabSize: number;
  #known = 0;

  constructor(random: (below: number) => number, truth: readonly TokenId[], vocabSize: number) {
    this.#random = random;
    this.#truth = truth;
    this.#vocabSize = vocabSize;
  }

  push(id: TokenId): void {
    const expected = this.#truth[this.#known++] ?? id;
    if (expected !== id) throw new Error(`token ${this.#known - 1} is ${id}, not ${expected}`);
  }

  wish(most: number): DraftWish {
    const random = this.#random;
    const kind = random(4);
    if (kind === 0) return { kind: "none" };
    if (kind === 1) return { kind: "block" };
    const length = 1 + random(most);
    const right = random(length + 1);
    const ids = Array.from({ length }, (_, at) => {
      const truth = this.#truth[this.#known + at];
      return at < right && truth !== undefined ? truth : random(this.#vocabSize);
    });
    if (kind === 2) return { kind: "proposal", proposal: { ids, parents: null, drafter: "copy" } };
    return { kind: "proposal", proposal: this.#branch(ids) };
  }

  choose({ rows }: Lattice, _anchor: TokenId, _position: number, most: number): Proposal | null {
    if (this.#random(6) === 0) return null;
    const ids = rows.slice(0, most).map(({ ids: best }) => best[0]!);
    const chain = { ids, parents: null, drafter: "dflash2" } as const;
    return this.#random(2) === 0 ? chain : this.#branch(ids);
  }

  landed(): void {}

  idle(): void {}

  /** Hangs wrong tokens beside the nodes of a chain, so that right ones move back in the window. */
  #branch(chain: readonly TokenId[]): Proposal {
    const ids: TokenId[] = [];
    const parents: number[] = [];
    let parent = -1;
    for (const id of chain) {
      while (ids.length + 1 < chain.length && this.#random(3) === 0) {
        parents.push(this.#random(ids.length + 1) - 1);
        ids.push((id + 1 + this.#random(this.#vocabSize - 1)) % this.#vocabSize);
      }
      if (ids.length === chain.length) break;
      parents.push(parent);
      parent = ids.push(id) - 1;
    }
    return { ids, parents, drafter: "dflash" };
  }
}
