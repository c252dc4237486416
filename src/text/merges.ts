import type { TokenId } from "../ids.ts";
import { placesFor } from "./token-table.ts";

/** Words of a place: left, right, rank, merged. */
const placeWords = 4;

/**
 * The merges of a byte-pair vocabulary: which two neighbouring tokens become which one, and the rank
 * that says who goes first. They lie in a hash table with open addressing, in one array: millions of
 * look-ups a text find left, right, rank and merged side by side.
 */
export class Merges {
  readonly #words: Int32Array;
  readonly #mask: number;

  /** @param count of the merges that will be set */
  constructor(count: number) {
    const places = placesFor(count);
    this.#mask = places - 1;
    this.#words = new Int32Array(placeWords * places).fill(-1);
  }

  /** Of a pair that is set twice, the later rank counts, as in the reference tokenizers. */
  set(left: TokenId, right: TokenId, rank: number, merged: TokenId): void {
    const word = this.#wordOf(left, right);
    this.#words[word] = left;
    this.#words[word + 1] = right;
    this.#words[word + 2] = rank;
    this.#words[word + 3] = merged;
  }

  /** Where the merge of a pair is, for the two below; -1 where there is none. */
  find(left: TokenId, right: TokenId): number {
    const word = this.#wordOf(left, right);
    return this.#words[word]! < 0 ? -1 : word;
  }

  /** From 0; the lowest goes first. */
  rank(merge: number): number {
    return this.#words[merge + 2]!;
  }

  merged(merge: number): TokenId {
    return this.#words[merge + 3]!;
  }

  /** The first word of the place where the pair is, or would be. */
  #wordOf(left: TokenId, right: TokenId): number {
    const words = this.#words;
    const sum = Math.imul(left, 0x9e3779b1) ^ Math.imul(right, 0x85ebca6b);
    let place = (sum ^ (sum >>> 15)) & this.#mask;
    for (;;) {
      const word = place * placeWords;
      const found = words[word]!;
      if (found < 0 || (found === left && words[word + 1] === right)) return word;
      place = (place + 1) & this.#mask;
    }
  }
}
