import { grammarEndingBytesMax } from "../limits.ts";
import type { Automaton } from "./automaton.ts";
import type { Frame, FrameWay, ParseState } from "./parse-state.ts";
import { ops, type Program } from "./program.ts";
import { type ShortestWays, shortestWays } from "./shortest-ways.ts";

/** A place, and the frame that is current there. */
interface Spot {
  readonly place: number;
  readonly frame: Frame;
}

/** Bytes of an ending where it may choose, best first: an a, digits, what is seen, a space. */
const preferred: readonly (readonly [first: number, last: number])[] = [
  [0x61, 0x61],
  [0x30, 0x39],
  [0x21, 0x7e],
  [0x20, 0x20],
];

const atEnd: FrameWay = { bytes: 0, returns: 0, at: 0 };
const farthest: FrameWay = {
  bytes: Number.POSITIVE_INFINITY,
  returns: Number.POSITIVE_INFINITY,
  at: 0,
};

/** Finds the fewest bytes that end a text. Those of frames and states are kept with them. */
export class Endings {
  readonly #automaton: Automaton;
  readonly #program: Program;
  #known: ShortestWays | null = null;
  #longest: number | null = null;

  constructor(automaton: Automaton, program: Program) {
    this.#automaton = automaton;
    this.#program = program;
  }

  /** The most that end any one rule, of those that are found. */
  get longest(): number {
    this.#longest ??= this.#ways.bytes.reduce(
      (most, bytes) => (Number.isFinite(bytes) ? Math.max(most, bytes) : most),
      0,
    );
    return this.#longest;
  }

  /** How many there are; Infinity: more than `grammarEndingBytesMax`. */
  length(state: ParseState): number {
    state.endingBytes ??= state.ended ? 0 : this.#nearest(state).bytes;
    return state.endingBytes;
  }

  /** The bytes themselves, of a state whose ending has a length. */
  bytes(state: ParseState): number[] {
    const written: number[] = [];
    const { ops: each, starts, targets } = this.#program;
    const { nexts } = this.#ways;
    /** Behind rules that the ending calls itself. */
    const behind: number[] = [];
    let spot = state.ended ? null : this.#nearest(state).spot;
    while (spot) {
      const { place, frame }: Spot = spot;
      const op = each[place];
      if (op === ops.return) {
        const inner = behind.pop();
        spot = inner === undefined ? this.#behind(frame) : { place: inner, frame };
        continue;
      }
      let next = nexts[place]!;
      if (op === ops.call) {
        behind.push(targets[starts[place]! + 1]!);
      } else if (op === ops.read) {
        const choice = this.#choose(place);
        written.push(choice.byte);
        next = choice.next;
      }
      spot = { place: next, frame };
    }
    return written;
  }

  get #ways(): ShortestWays {
    this.#known ??= shortestWays(this.#program, grammarEndingBytesMax);
    return this.#known;
  }

  #nearest(state: ParseState): { bytes: number; spot: Spot | null } {
    let best: { bytes: number; spot: Spot | null } = { bytes: grammarEndingBytesMax, spot: null };
    for (const { frame, places } of state.groups) {
      const outer = this.#way(frame).bytes;
      for (const place of places) {
        const bytes = this.#ways.bytes[place]! + outer;
        const nearer = best.spot ? bytes < best.bytes : bytes <= best.bytes;
        if (nearer) best = { bytes, spot: { place, frame } };
      }
    }
    return best.spot ? best : { bytes: Number.POSITIVE_INFINITY, spot: null };
  }

  /** Where an ending goes on behind a frame; null: it has come to the end. */
  #behind(frame: Frame): Spot | null {
    if (frame === this.#automaton.outermost) return null;
    const { at } = this.#way(frame);
    return { place: frame.places[at]!, frame: frame.frames[at]! };
  }

  /** Of the ranges that are on a shortest way, the one with the best byte. */
  #choose(read: number): { byte: number; next: number } {
    const { starts, targets, firsts, lasts } = this.#program;
    const { bytes } = this.#ways;
    const all = Array.from({ length: starts[read + 1]! - starts[read]! }, (_, index) => {
      const at = starts[read]! + index;
      return { first: firsts[at]!, last: lasts[at]!, next: targets[at]! };
    });
    const least = Math.min(...all.map(({ next }) => bytes[next]!));
    const nearest = all.filter(({ next }) => bytes[next] === least);
    for (const [low, high] of preferred) {
      const range = nearest.find(({ first, last }) => first <= high && last >= low);
      if (range) return { byte: Math.max(range.first, low), next: range.next };
    }
    return { byte: nearest[0]!.first, next: nearest[0]!.next };
  }

  /**
   * Frames return in circles where a rule begins with itself: their ways are found together. Which
   * of several is taken doesn't depend on who asked first.
   */
  #way(frame: Frame): FrameWay {
    if (frame.way) return frame.way;
    if (frame === this.#automaton.outermost) return atEnd;
    const open = this.#unknownFrom(frame);
    for (const each of open) each.way = farthest;
    for (let nearer = true; nearer; ) {
      nearer = false;
      // Outer frames were found last, and inner ones build on them.
      for (const each of open.toReversed()) {
        for (const at of each.places.keys()) {
          const way = this.#wayBy(each, at);
          if (!isNearer(way, each.way!)) continue;
          each.way = way;
          nearer = true;
        }
      }
    }
    return frame.way ?? farthest;
  }

  /** The way by one of a frame's places, as far as those behind it are known. */
  #wayBy({ places, frames }: Frame, at: number): FrameWay {
    const { bytes, returns } = this.#way(frames[at]!);
    return { bytes: this.#ways.bytes[places[at]!]! + bytes, returns: returns + 1, at };
  }

  #unknownFrom(frame: Frame): Frame[] {
    const found = new Set([frame]);
    for (const { frames } of found) {
      for (const outer of frames) {
        if (outer !== this.#automaton.outermost && !outer.way) found.add(outer);
      }
    }
    return [...found];
  }
}

function isNearer(way: FrameWay, other: FrameWay): boolean {
  if (way.bytes !== other.bytes) return way.bytes < other.bytes;
  if (way.returns !== other.returns) return way.returns < other.returns;
  return way.at < other.at;
}
