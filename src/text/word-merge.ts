import type { TokenId } from "../ids.ts";
import type { Merges } from "./merges.ts";

/** More than the bytes of any word: a place in the queue is a rank times this, plus a position. */
const positionsMax = 2 ** 30;

/**
 * Turns a word's bytes into tokens: of all neighbours that have a merge, those with the lowest rank
 * become one, the leftmost of equals first, until none has (byte-pair encoding; Sennrich et al. 2016,
 * section 3.2). A queue by rank and position finds them, so that n bytes take n·log n steps at most.
 */
export class WordMerge {
  readonly #merges: Merges;
  readonly #byteIds: Int32Array;
  /** Of the tokens, each by the position of its first byte; `#before` is -1 at the word's start. */
  readonly #ids: Int32Array;
  readonly #before: Int32Array;
  readonly #after: Int32Array;
  /** The merge of the token at a position with the one after it, or -1. */
  readonly #merge: Int32Array;
  /** A binary heap of ranks and positions, the least first. Outdated ones are passed over. */
  readonly #queue: Float64Array;
  #queued = 0;
  #length = 0;
  /** Positions whose first merge has been looked for. */
  #paired = 0;

  /**
   * @param byteIds the token of each byte, 256
   * @param bytesMax of the words that it will be given
   */
  constructor(merges: Merges, byteIds: Int32Array, bytesMax: number) {
    this.#merges = merges;
    this.#byteIds = byteIds;
    this.#ids = new Int32Array(bytesMax);
    this.#before = new Int32Array(bytesMax);
    this.#after = new Int32Array(bytesMax);
    this.#merge = new Int32Array(bytesMax);
    // Each merge takes one off and puts two on at most.
    this.#queue = new Float64Array(2 * bytesMax);
  }

  /** Begins with a word: the first `length` of `bytes`. */
  load(bytes: Uint8Array, length: number): void {
    this.#length = length;
    this.#queued = 0;
    this.#paired = 0;
    for (let at = 0; at < length; at++) {
      this.#ids[at] = this.#byteIds[bytes[at]!]!;
      this.#before[at] = at - 1;
      this.#after[at] = at + 1;
    }
  }

  /** Goes on for that many steps at most; whether the word is done. */
  run(steps: number): boolean {
    for (let step = 0; step < steps; step++) {
      if (this.#paired < this.#length) this.#pair(this.#paired++);
      else if (this.#queued > 0) this.#joinNext();
      else return true;
    }
    return false;
  }

  /** Appends the word's tokens. */
  write(ids: TokenId[]): void {
    for (let at = 0; at < this.#length; at = this.#after[at]!) ids.push(this.#ids[at]!);
  }

  #joinNext(): void {
    const first = this.#take();
    const rank = Math.floor(first / positionsMax);
    const at = first - rank * positionsMax;
    const merge = this.#merge[at]!;
    if (merge >= 0 && this.#merges.rank(merge) === rank) this.#join(at, merge);
  }

  /** Makes one of the token at a position and the one after it. */
  #join(at: number, merge: number): void {
    const gone = this.#after[at]!;
    const after = this.#after[gone]!;
    this.#merge[gone] = -1;
    this.#ids[at] = this.#merges.merged(merge);
    this.#after[at] = after;
    if (after < this.#length) this.#before[after] = at;
    this.#pair(at);
    if (this.#before[at]! >= 0) this.#pair(this.#before[at]!);
  }

  /** Looks anew for a merge of the token at a position with the one after it. */
  #pair(at: number): void {
    const after = this.#after[at]!;
    const none = after >= this.#length;
    const merge = none ? -1 : this.#merges.find(this.#ids[at]!, this.#ids[after]!);
    this.#merge[at] = merge;
    if (merge >= 0) this.#put(this.#merges.rank(merge) * positionsMax + at);
  }

  #put(entry: number): void {
    const queue = this.#queue;
    let at = this.#queued++;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (queue[parent]! <= entry) break;
      queue[at] = queue[parent]!;
      at = parent;
    }
    queue[at] = entry;
  }

  #take(): number {
    const queue = this.#queue;
    const first = queue[0]!;
    const last = queue[--this.#queued]!;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= this.#queued) break;
      if (child + 1 < this.#queued && queue[child + 1]! < queue[child]!) child++;
      if (queue[child]! >= last) break;
      queue[at] = queue[child]!;
      at = child;
    }
    queue[at] = last;
    return first;
  }
}
