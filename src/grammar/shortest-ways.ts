import { ops, type Program, returnPlace, usersOf } from "./program.ts";

/** How to come from each place of a program to its rule's return with the fewest bytes. */
export interface ShortestWays {
  /** These bytes; Infinity where they are more than was asked for, or where there is no way. */
  readonly bytes: Float64Array;
  /** Where to go on: behind a byte, at a split's place, or at the entry of what is called. */
  readonly nexts: Int32Array;
}

/** Ways that were found, by their length; those of one length in the order in which they were. */
class FoundWays {
  readonly places: number[] = [];
  readonly nexts: number[] = [];
  /** By way, the next of the same length; −1: none yet. */
  readonly #links: number[] = [];
  /** By length, the first way and the last. */
  readonly #heads: Int32Array;
  readonly #tails: Int32Array;

  constructor(bytesMax: number) {
    this.#heads = new Int32Array(bytesMax + 1).fill(-1);
    this.#tails = new Int32Array(bytesMax + 1).fill(-1);
  }

  add(length: number, place: number, next: number): void {
    const way = this.places.push(place) - 1;
    this.nexts.push(next);
    this.#links.push(-1);
    const before = this.#tails[length]!;
    if (before < 0) this.#heads[length] = way;
    else this.#links[before] = way;
    this.#tails[length] = way;
  }

  /** The first way of a length, or the one behind another; −1: none yet. */
  after(length: number, way: number | null): number {
    return way === null ? this.#heads[length]! : this.#links[way]!;
  }
}

/** @param bytesMax of the ways that are looked for: linear in these and the program's size */
export function shortestWays(program: Program, bytesMax: number): ShortestWays {
  const { ops: each, starts, targets } = program;
  const bytes = new Float64Array(each.length).fill(Number.POSITIVE_INFINITY);
  const nexts = new Int32Array(each.length);
  const users = usersOf(program);
  const found = new FoundWays(bytesMax);
  found.add(0, returnPlace, returnPlace);
  for (let length = 0; length <= bytesMax; length++) {
    // More of this length may come while they are looked at.
    for (let way = found.after(length, null); way >= 0; way = found.after(length, way)) {
      const place = found.places[way]!;
      if (bytes[place]! <= length) continue;
      bytes[place] = length;
      nexts[place] = found.nexts[way]!;
      for (let at = users.starts[place]!; at < users.starts[place + 1]!; at++) {
        const user = users.places[at]!;
        const op = each[user]!;
        const first = starts[user]!;
        let whole = op === ops.read ? length + 1 : length;
        if (op === ops.call) whole = bytes[targets[first]!]! + bytes[targets[first + 1]!]!;
        if (whole > bytesMax || bytes[user]! <= whole) continue;
        found.add(whole, user, op === ops.call ? targets[first]! : place);
      }
    }
  }
  return { bytes, nexts };
}
