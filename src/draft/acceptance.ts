import { invariant } from "../errors.ts";
import { windowRowsMax } from "../limits.ts";

/** How fast outcomes outweigh what was thought before. */
export interface Learning {
  /** How many rounds the prior counts as. */
  readonly priorRounds: number;
  /** What a round still counts a round later, below 1. */
  readonly memory: number;
}

/** Of one stream: a few rounds outweigh the prior, and the last ten or so decide. */
const ofStream: Learning = { priorRounds: 2, memory: 0.9 };
/** Of all streams of an engine: the last hundred rounds or so. */
export const ofEngine: Learning = { priorRounds: 8, memory: 0.99 };

/** The chance that a draft lands when those before it did, before any was tried; depth from 1. */
export type Prior = (depth: number) => number;

/** Of a block drafter: 0.85, 0.75, 0.70, … 0.50 (the reference system's). */
export const blockPrior: Prior = (depth) =>
  depth === 1 ? 0.85 : Math.max(0.5, (85 - 5 * depth) / 100);

/** Of copied text, at every depth (the reference system's). */
export const copyPrior: Prior = () => 0.94;

/**
 * How the drafts of one drafter land, by depth, in one stream or in all. Of a tree the depth of the path that
 * landed counts, so what is expected of its nodes is right for trees as wide as those of late.
 */
export class Acceptance {
  /** By depth − 1: rounds that tried it and rounds in which it landed, both fading. */
  readonly #tried: Float64Array;
  readonly #landed: Float64Array;
  readonly #memory: number;

  constructor(prior: Prior, { priorRounds, memory }: Learning = ofStream) {
    this.#tried = new Float64Array(windowRowsMax - 1).fill(priorRounds);
    this.#landed = this.#tried.map((rounds, at) => rounds * prior(at + 1));
    this.#memory = memory;
  }

  /** The chance that a draft lands when those before it did; depth from 1. */
  chance(depth: number): number {
    return this.#landed[depth - 1]! / this.#tried[depth - 1]!;
  }

  /** The tokens that a window of so many drafts is expected to bring, the draw after them included. */
  expectedTokens(drafts: number): number {
    invariant(drafts >= 0 && drafts < windowRowsMax, `${drafts} drafts`);
    let tokens = 1;
    let path = 1;
    for (let at = 0; at < drafts; at++) {
      path *= this.chance(at + 1);
      tokens += path;
    }
    return tokens;
  }

  /** A round's outcome. It says nothing of the drafts beyond the first that missed. */
  observe(proposed: number, accepted: number): void {
    const inside = accepted >= 0 && accepted <= proposed && proposed < windowRowsMax;
    invariant(inside, `${accepted} of ${proposed} drafts accepted`);
    for (let at = 0; at < Math.min(proposed, accepted + 1); at++) {
      this.#tried[at] = this.#tried[at]! * this.#memory + 1;
      this.#landed[at] = this.#landed[at]! * this.#memory + (at < accepted ? 1 : 0);
    }
  }
}
