import type { TokenId } from "../ids.ts";
import { grammarMaskWordsMax } from "../limits.ts";
import type { TokenSet } from "../sampling/constraint.ts";
import type { Automaton } from "./automaton.ts";
import type { Frame, Group, ParseState } from "./parse-state.ts";
import type { TokenTrie } from "./token-trie.ts";

/** What tokens can be read from some places of a frame on, whatever is around the frame. */
interface Walk {
  /** The tokens: a set where they are many, else their ids. */
  readonly set: TokenSet | null;
  readonly ids: readonly TokenId[];
  /** Nodes of the trie at which the frame has returned, and from which tokens go on. */
  readonly exits: readonly number[];
  /** What is read behind those, by where the frame returns to. */
  readonly behind: Map<string, Walk>;
}

/** Places of a frame, up to which each is walked from alone. */
const singlePlacesMax = 4;

/**
 * Finds the tokens that may come next. The trie is walked once for each set of places, and what was
 * found is kept: most of a reply's tokens then take a few unions of sets.
 */
export class TokenMasks {
  readonly #automaton: Automaton;
  readonly #trie: TokenTrie;
  readonly #words: number;
  #walks = new Map<string, Walk>();
  #keptWords = 0;

  /** @param words of a set of all tokens */
  constructor(automaton: Automaton, trie: TokenTrie, words: number) {
    this.#automaton = automaton;
    this.#trie = trie;
    this.#words = words;
  }

  /** Adds the tokens that may follow a state to a set. */
  add(state: ParseState, set: TokenSet): void {
    const done = new Map<Walk, Set<Frame>>();
    for (const group of state.groups) this.#add(group, null, set, done);
  }

  /** @param before the walk that came out of the frame within; null: tokens begin here */
  #add(
    { frame, places }: Group,
    before: Walk | null,
    set: TokenSet,
    done: Map<Walk, Set<Frame>>,
  ): void {
    const alike = [...new Set(places.map((place) => this.#automaton.alike(place)))];
    // Walks from single places serve other states too. Of many places most tokens are the same.
    const single = alike.length <= singlePlacesMax;
    for (const some of single ? alike.map((place) => [place]) : [alike]) {
      const walk = this.#walk(some, before);
      const frames = done.get(walk) ?? new Set();
      if (frames.has(frame)) continue;
      done.set(walk, frames.add(frame));
      if (walk.set) for (let word = 0; word < set.length; word++) set[word]! |= walk.set[word]!;
      for (const id of walk.ids) set[id >>> 5]! |= 1 << (id & 31);
      if (walk.exits.length === 0 || frame === this.#automaton.outermost) continue;
      const { groups } = this.#automaton.returned(frame);
      for (const outer of groups) this.#add(outer, walk, set, done);
    }
  }

  #walk(places: readonly number[], before: Walk | null): Walk {
    const key = places.join();
    const known = (before?.behind ?? this.#walks).get(key);
    if (known) return known;
    const walk = this.#walkFrom(this.#automaton.stateAt(places), before?.exits ?? [0]);
    this.#keptWords += walk.ids.length + walk.exits.length + (walk.set?.length ?? 0);
    if (this.#keptWords > grammarMaskWordsMax) {
      this.#walks = new Map();
      this.#keptWords = 0;
    }
    (before?.behind ?? this.#walks).set(key, walk);
    return walk;
  }

  #walkFrom(start: ParseState, roots: readonly number[]): Walk {
    const automaton = this.#automaton;
    const { bytes, depths, ends, firsts, ids } = this.#trie;
    const set = new Int32Array(this.#words);
    const few: TokenId[] = [];
    const exits: number[] = [];
    const states: ParseState[] = [];
    for (const root of roots) {
      const end = ends[root]!;
      states[depths[root]!] = start;
      let visited = 0;
      for (let node = root + 1; node < end; visited++) {
        const depth = depths[node]!;
        const state = automaton.step(states[depth - 1]!, bytes[node]!);
        if (state === null) {
          node = ends[node]!;
          continue;
        }
        for (let at = firsts[node]!; at < firsts[node + 1]!; at++) {
          const id = ids[at]!;
          set[id >>> 5]! |= 1 << (id & 31);
          if (few.length <= this.#words) few.push(id);
        }
        if (state.ended && ends[node]! > node + 1) exits.push(node);
        states[depth] = state;
        node++;
      }
      automaton.spend(visited);
    }
    const many = few.length > this.#words;
    return { set: many ? set : null, ids: many ? [] : few, exits, behind: new Map() };
  }
}
