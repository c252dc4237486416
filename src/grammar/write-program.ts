import { InputError } from "../errors.ts";
import { grammarPlacesMax } from "../limits.ts";
import { type ByteBranch, type CodeSet, utf8Branches } from "./code-points.ts";
import type { Expression, Rules } from "./expressions.ts";
import {
  type ByteEdge,
  type Instruction,
  type Program,
  reachesReturn,
  returnPlace,
} from "./program.ts";

const encoder = new TextEncoder();

/**
 * Writes rules as a program.
 * @param reach bytes of the longest token
 * @throws InputError for what takes too many instructions
 */
export function toProgram(rules: Rules, start: string, reach: number): Program {
  const writer = new ProgramWriter(rules, reach);
  const entry = writer.program(start);
  const { instructions } = writer;
  const empty = reachesReturn(instructions, false);
  const alike = writer.alike.map((place, own) => {
    const instruction = instructions[own]!;
    // A rule that may read nothing goes through more copies than a token has bytes.
    return instruction.kind === "call" && empty[instruction.entry] ? own : place;
  });
  return { instructions, start: entry, live: reachesReturn(instructions, true), empty, alike };
}

class ProgramWriter {
  readonly instructions: Instruction[] = [{ kind: "return" }];
  readonly alike: number[] = [returnPlace];
  readonly #rules: Rules;
  readonly #reach: number;
  #written = 0;
  /** Instructions that are the same are one. */
  readonly #known = new Map<string, number>();
  readonly #sets = new Map<CodeSet, readonly ByteBranch[]>();
  readonly #entries = new Map<string, { readonly place: number; readonly nexts: number[] }>();

  constructor(rules: Rules, reach: number) {
    this.#rules = rules;
    this.#reach = reach;
  }

  /** Writes a rule and all that it names. Returns its entry. */
  program(start: string): number {
    const { place } = this.#entry(start);
    // Writing a rule may add entries, and a map's walk comes to those too.
    for (const [name, { nexts }] of this.#entries) {
      nexts.push(this.#write(this.#rules.get(name)!, returnPlace));
    }
    return place;
  }

  #entry(name: string): { readonly place: number; readonly nexts: number[] } {
    const known = this.#entries.get(name);
    if (known) return known;
    const nexts: number[] = [];
    const entry = { place: this.#add({ kind: "split", nexts }), nexts };
    this.#entries.set(name, entry);
    return entry;
  }

  #add(instruction: Instruction): number {
    this.#count();
    this.alike.push(this.instructions.length);
    return this.instructions.push(instruction) - 1;
  }

  /** Counts what is written again, too: it takes as long. */
  #count(): void {
    if (++this.#written > grammarPlacesMax) {
      throw new InputError(
        `The reply's form takes more than ${grammarPlacesMax} instructions: ` +
          "fewer or smaller repeats, or less of everything, would fit.",
      );
    }
  }

  #share(key: string, instruction: Instruction): number {
    const known = this.#known.get(key);
    if (known !== undefined) {
      this.#count();
      return known;
    }
    const place = this.#add(instruction);
    this.#known.set(key, place);
    return place;
  }

  /** Where the expression is read from, if `next` is where it goes on. */
  #write(expression: Expression, next: number): number {
    switch (expression.kind) {
      case "text":
        return encoder
          .encode(expression.text)
          .reduceRight((to, byte) => this.#bytes([{ first: byte, last: byte, next: to }]), next);
      case "set":
        return this.#set(expression.set, next);
      case "sequence":
        return expression.parts.reduceRight((to, part) => this.#write(part, to), next);
      case "either":
        return this.#split(expression.options.map((option) => this.#write(option, next)));
      case "repeat":
        return this.#repeat(expression.body, expression.least, expression.most, next);
      case "rule": {
        const entry = this.#entry(expression.name).place;
        // What would only return behind a rule goes there and doesn't come back.
        if (next === returnPlace) return entry;
        return this.#share(`call ${entry} ${next}`, { kind: "call", entry, next });
      }
    }
  }

  #bytes(edges: readonly ByteEdge[]): number {
    const key = edges.map(({ first, last, next }) => `${first} ${last} ${next}`).join();
    return this.#share(key, { kind: "bytes", edges });
  }

  #split(places: readonly number[]): number {
    const nexts = [...new Set(places)];
    if (nexts.length === 1) return nexts[0]!;
    return this.#share(`split ${nexts}`, { kind: "split", nexts });
  }

  #set(set: CodeSet, next: number): number {
    const branches = this.#sets.get(set) ?? utf8Branches(set);
    this.#sets.set(set, branches);
    return this.#branches(branches, next);
  }

  #branches(branches: readonly ByteBranch[], next: number): number {
    return this.#bytes(
      branches.map(({ first, last, behind }) => ({
        first,
        last,
        next: behind.length > 0 ? this.#branches(behind, next) : next,
      })),
    );
  }

  #repeat(body: Expression, least: number, most: number | null, next: number): number {
    let entry = next;
    let copies = most ?? 0;
    if (most === null) {
      const nexts: number[] = [];
      const loop = this.#add({ kind: "split", nexts });
      const again = this.#write(body, loop);
      nexts.push(...(again === loop ? [next] : [again, next]));
      entry = least > 0 ? again : loop;
      copies = Math.max(0, least - 1);
    }
    /** The latest copies, of those that must come and of those that may. */
    const firsts: (number | null)[] = [null, null];
    for (let left = 1; left <= copies; left++) {
      const place = this.#write(body, entry);
      // A body that reads nothing may come as often as it likes.
      if (place === entry) break;
      const needed = Math.max(0, least - (copies - left));
      this.#liken(place, left, needed, most === null, firsts);
      entry = needed > 0 ? place : this.#split([place, next]);
    }
    return entry;
  }

  /** Notes that a copy is like another, where no token reaches from it to where they differ. */
  #liken(
    place: number,
    left: number,
    needed: number,
    endless: boolean,
    firsts: (number | null)[],
  ): void {
    const { kind } = this.instructions[place]!;
    if (kind !== "bytes" && kind !== "call") return;
    if ((!endless && left <= this.#reach) || (needed > 0 && needed <= this.#reach)) return;
    const which = needed > 0 ? 1 : 0;
    firsts[which] ??= place;
    this.alike[place] = firsts[which];
  }
}
