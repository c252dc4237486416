import type { TokenId } from "../ids.ts";
import { grammarEndingSpareTokens } from "../limits.ts";
import type { TokenSet } from "../sampling/constraint.ts";
import type { Automaton } from "./automaton.ts";
import type { Endings } from "./endings.ts";
import type { ParseState } from "./parse-state.ts";
import type { TokenTrie } from "./token-trie.ts";

/** Endings behind one token whose tokens are counted; of others each byte counts as one. */
const countedEndingsMax = 256;

/** Says in which tokens a text can be ended, and which tokens leave room for that. */
export class EndingTokens {
  readonly #automaton: Automaton;
  readonly #endings: Endings;
  readonly #trie: TokenTrie;

  constructor(automaton: Automaton, endings: Endings, trie: TokenTrie) {
    this.#automaton = automaton;
    this.#endings = endings;
    this.#trie = trie;
  }

  /** Tokens beside those of an ending, from which on a draw may leave it no room. */
  get spareTokens(): number {
    // A token may open a rule, and leave another one open: each may have to be ended.
    return Math.max(grammarEndingSpareTokens, 2 * this.#endings.longest);
  }

  /** The fewest bytes that end the text, no fewer than its tokens; Infinity: too many. */
  bytes(state: ParseState): number {
    return this.#endings.length(state);
  }

  /** The fewest tokens that write these bytes; null where they are too many, or have no tokens. */
  tokens(state: ParseState): readonly TokenId[] | null {
    if (state.ending === undefined) {
      const writable = Number.isFinite(this.bytes(state));
      state.ending = writable ? this.#written(this.#endings.bytes(state)) : null;
    }
    return state.ending;
  }

  /**
   * Takes tokens from those that may follow a state: all behind which so many tokens can't end the
   * text, and some behind which they hardly can, where it would take long to find out.
   * @throws InputError where a token takes too much work
   */
  narrow(state: ParseState, tokensMax: number, allowed: TokenSet): void {
    if (state.endingBytesBehind !== null && state.endingBytesBehind <= tokensMax) return;
    let most = 0;
    /** Endings by their bytes: states that were made anew are others, and end in the same. */
    const counted = new Set<string>();
    const known = new Map<ParseState, boolean>();
    this.#walk(state, (node, after) => {
      most = Math.max(most, this.bytes(after));
      const ends = known.get(after) ?? this.#endsWithin(after, tokensMax, counted);
      known.set(after, ends);
      if (ends) return;
      const { firsts, ids } = this.#trie;
      for (let at = firsts[node]!; at < firsts[node + 1]!; at++) {
        const id = ids[at]!;
        allowed[id >>> 5]! &= ~(1 << (id & 31));
      }
    });
    state.endingBytesBehind = most;
  }

  #endsWithin(state: ParseState, tokensMax: number, counted: Set<string>): boolean {
    const bytes = this.bytes(state);
    if (bytes <= tokensMax) return true;
    if (bytes > tokensMax * this.#trie.depthMax) return false;
    const written = this.#endings.bytes(state).join();
    if (!counted.has(written) && counted.size === countedEndingsMax) return false;
    counted.add(written);
    return (this.tokens(state)?.length ?? Number.POSITIVE_INFINITY) <= tokensMax;
  }

  /** Comes to each node of the trie that has tokens and can be read. */
  #walk(start: ParseState, visit: (node: number, after: ParseState) => void): void {
    const { bytes, depths, ends, firsts } = this.#trie;
    const states = [start];
    let visited = 0;
    for (let node = 1; node < depths.length; visited++) {
      const depth = depths[node]!;
      const state = this.#automaton.step(states[depth - 1]!, bytes[node]!);
      if (state === null) {
        node = ends[node]!;
        continue;
      }
      if (firsts[node]! < firsts[node + 1]!) visit(node, state);
      states[depth] = state;
      node++;
    }
    this.#automaton.spend(visited);
  }

  #written(bytes: readonly number[]): readonly TokenId[] | null {
    /** By where the bytes go on: the fewest tokens from there, and the first of them. */
    const counts: number[] = [];
    const tokens: { id: TokenId; end: number }[] = [];
    counts[bytes.length] = 0;
    for (let at = bytes.length - 1; at >= 0; at--) {
      counts[at] = Number.POSITIVE_INFINITY;
      for (const { id, end } of this.#beginning(bytes, at)) {
        if (counts[end]! + 1 >= counts[at]!) continue;
        counts[at] = counts[end]! + 1;
        tokens[at] = { id, end };
      }
    }
    if (counts[0] === Number.POSITIVE_INFINITY) return null;
    const ids: TokenId[] = [];
    for (let at = 0; at < bytes.length; at = tokens[at]!.end) ids.push(tokens[at]!.id);
    return ids;
  }

  /** The tokens that these bytes begin with from some byte on, and the bytes behind them. */
  #beginning(bytes: readonly number[], from: number): { id: TokenId; end: number }[] {
    const trie = this.#trie;
    const found: { id: TokenId; end: number }[] = [];
    let parent = 0;
    for (let at = from; at < bytes.length; at++) {
      const end = trie.ends[parent]!;
      let node = parent + 1;
      while (node < end && trie.bytes[node] !== bytes[at]) node = trie.ends[node]!;
      if (node >= end) break;
      const first = trie.firsts[node]!;
      if (first < trie.firsts[node + 1]!) found.push({ id: trie.ids[first]!, end: at + 1 });
      parent = node;
    }
    return found;
  }
}
