import { chainDrafts } from "../../draft/chain.ts";
import type { Drafting, DraftWish } from "../../draft/drafting.ts";
import type { Codebooks, Lattice } from "../../draft/lattice.ts";
import type { Drafts, Proposal } from "../../draft/proposal.ts";
import { treeDrafts } from "../../draft/tree.ts";
import type { Position, TokenId } from "../../ids.ts";
import type { DrafterShape } from "../../model/drafter-shape.ts";
import type { SamplingParams } from "../../sampling/params.ts";
import type { Random } from "./timeline.ts";

/** The model drafter of a gate. */
export interface GateModel {
  readonly shape: DrafterShape;
  /** Null for DFlash. */
  readonly codebooks: Codebooks | null;
}

/** Asks for a block every round and verifies all of it: its likeliest chain, or a tree. */
export class ModelDrafting implements Drafting {
  readonly #model: GateModel;
  readonly #sampling: SamplingParams;
  readonly #tree: boolean;

  constructor(model: GateModel, sampling: SamplingParams, tree: boolean) {
    this.#model = model;
    this.#sampling = sampling;
    this.#tree = tree;
  }

  push(): void {}

  wish(_most: number, blocks: boolean): DraftWish {
    return { kind: blocks ? "block" : "none" };
  }

  choose(lattice: Lattice, anchor: TokenId, position: Position, most: number): Proposal {
    const { shape, codebooks } = this.#model;
    const point = { anchor, position, sampling: this.#sampling };
    if (this.#tree) {
      return { ...treeDrafts(lattice, codebooks, point, most), drafter: shape.kind };
    }
    const ids = chainDrafts(lattice, codebooks, point, most);
    return { ids, parents: null, drafter: shape.kind };
  }

  landed(): void {}

  idle(): void {}
}

/** What a drafter that knows the reply goes by. */
export interface Truth {
  /** The prompt, then the reply as it will be. */
  readonly ids: readonly TokenId[];
  readonly vocabSize: number;
}

/** Proposes by what it knows of the reply. */
abstract class KnowingDrafting implements Drafting {
  readonly #truth: Truth;
  #known = 0;

  constructor(truth: Truth) {
    this.#truth = truth;
  }

  /** The drafts of a round; null for none. */
  protected abstract drafts(most: number): Drafts | null;

  push(): void {
    this.#known++;
  }

  wish(most: number, _blocks: boolean): DraftWish {
    const drafts = this.drafts(most);
    if (!drafts) return { kind: "none" };
    return { kind: "proposal", proposal: { ...drafts, drafter: "copy" } };
  }

  choose(_lattice: Lattice, _anchor: TokenId, _position: Position, _most: number): Proposal | null {
    return null;
  }

  landed(): void {}

  idle(): void {}

  /** The next tokens, and any behind the reply's end. */
  protected next(count: number): TokenId[] {
    const { ids, vocabSize } = this.#truth;
    return Array.from({ length: count }, (_, at) => ids[this.#known + at] ?? at % vocabSize);
  }

  /** Another token, `distance` ids on. */
  protected wrong(id: TokenId, distance = 1): TokenId {
    return (id + distance) % this.#truth.vocabSize;
  }
}

/** Every window is as wide as can be, and right up to the reply's end. */
export class RightDrafting extends KnowingDrafting {
  protected override drafts(most: number): Drafts {
    return { ids: this.next(most), parents: null };
  }
}

/** Not one first draft is right; those behind it would be. */
export class WrongDrafting extends KnowingDrafting {
  readonly #random: Random;

  constructor(truth: Truth, random: Random) {
    super(truth);
    this.#random = random;
  }

  protected override drafts(most: number): Drafts {
    const [first, ...rest] = this.next(1 + this.#random(most)) as [TokenId, ...TokenId[]];
    const heads = Math.min(1 + this.#random(3), most - rest.length);
    const ids = [...Array.from({ length: heads }, (_, at) => this.wrong(first, 1 + at)), ...rest];
    if (heads === 1) return { ids, parents: null };
    // The pending token's children, and a chain behind the last of them.
    return { ids, parents: ids.map((_, at) => (at < heads ? -1 : at - 1)) };
  }
}

/** Right at one round, wrong at the next. */
export class AlternatingDrafting extends WrongDrafting {
  #rounds = 0;

  protected override drafts(most: number): Drafts {
    return this.#rounds++ % 2 === 0 ? { ids: this.next(most), parents: null } : super.drafts(most);
  }
}

/**
 * Windows of any width, right up to any row: chains, trees in which the right tokens hang among wrong
 * ones, parts of blocks, and rounds without drafts.
 */
export class RandomDrafting extends KnowingDrafting {
  readonly #random: Random;

  constructor(truth: Truth, random: Random) {
    super(truth);
    this.#random = random;
  }

  override wish(most: number, blocks: boolean): DraftWish {
    return blocks && this.#random(5) === 0 ? { kind: "block" } : super.wish(most, blocks);
  }

  override choose(
    { rows }: Lattice,
    _anchor: TokenId,
    _position: Position,
    most: number,
  ): Proposal | null {
    const length = this.#random(Math.min(most, rows.length) + 1);
    const ids = rows.slice(0, length).map((row) => row.ids[0]!);
    return length === 0 ? null : { ...this.#shaped(ids, most), drafter: "dflash2" };
  }

  protected override drafts(most: number): Drafts | null {
    if (this.#random(6) === 0) return null;
    const length = 1 + this.#random(most);
    const right = this.#random(length + 1);
    const ids = this.next(length).map((id, at) => (at < right ? id : this.wrong(id, 1 + at)));
    return this.#shaped(ids, most);
  }

  #shaped(chain: readonly TokenId[], most: number): Drafts {
    return this.#random(2) === 0 ? { ids: chain, parents: null } : this.#branched(chain, most);
  }

  /** Hangs wrong tokens before each of a chain's, as long as there is room. */
  #branched(chain: readonly TokenId[], most: number): Drafts {
    const ids: TokenId[] = [];
    const parents: number[] = [];
    let parent = -1;
    chain.forEach((id, at) => {
      while (ids.length + chain.length - at < most && this.#random(2) === 0) {
        parents.push(this.#random(2) === 0 ? parent : this.#random(ids.length + 1) - 1);
        ids.push(this.wrong(id, 1 + this.#random(9)));
      }
      parents.push(parent);
      parent = ids.push(id) - 1;
    });
    return { ids, parents };
  }
}
