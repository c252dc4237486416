import { InputError } from "../errors.ts";
import { grammarPlacesMax } from "../limits.ts";
import { type ByteBranch, type CodeSet, utf8Branches } from "./code-points.ts";
import type { Expression, Rules } from "./expressions.ts";
import { FormWork } from "./form-work.ts";
import { InstructionList } from "./instruction-list.ts";
import { ops, type Program, reachesReturn, returnPlace, usersOf } from "./program.ts";

/** Instructions that are written in a step, and parts of expressions that are walked through. */
const instructionsAStep = 2;
const partsAStep = 16;

const encoder = new TextEncoder();
/** Most texts: their letters are their bytes. */
const ascii = /^[\0-\x7f]*$/;

/**
 * Writes rules as a program.
 * @param reach bytes of the longest token
 * @throws InputError for what takes too many instructions
 */
export function toProgram(
  rules: Rules,
  start: string,
  reach: number,
  work: FormWork = new FormWork(),
): Program {
  const writer = new ProgramWriter(rules, reach, work);
  const entry = writer.program(start);
  const instructions = writer.instructions.done();
  const users = usersOf(instructions);
  const empty = reachesReturn(instructions, users, false);
  const alike = Int32Array.from(writer.alike);
  for (let place = 0; place < alike.length; place++) {
    if (instructions.ops[place] !== ops.call) continue;
    // A rule that may read nothing goes through more copies than a token has bytes.
    if (empty[instructions.targets[instructions.starts[place]!]!] === 1) alike[place] = place;
  }
  return {
    ...instructions,
    start: entry,
    live: reachesReturn(instructions, users, true),
    empty,
    alike,
  };
}

class ProgramWriter {
  readonly instructions: InstructionList = new InstructionList();
  /** By place. */
  readonly alike: number[] = [];
  readonly #rules: Rules;
  readonly #reach: number;
  readonly #work: FormWork;
  #written = 0;
  readonly #sets = new Map<CodeSet, readonly ByteBranch[]>();
  readonly #entries = new Map<string, number>();

  constructor(rules: Rules, reach: number, work: FormWork) {
    this.#rules = rules;
    this.#reach = reach;
    this.#work = work;
    this.#add(ops.return);
  }

  /** Writes a rule and all that it names. Returns its entry. */
  program(start: string): number {
    const first = this.#entry(start);
    // Writing a rule may add entries, and a map's walk comes to those too.
    for (const [name, place] of this.#entries) {
      this.instructions.setTarget(place, 0, this.#write(this.#rules.get(name)!, returnPlace));
    }
    return first;
  }

  #entry(name: string): number {
    const known = this.#entries.get(name);
    if (known !== undefined) return known;
    this.instructions.target(returnPlace);
    const place = this.#add(ops.split);
    this.#entries.set(name, place);
    return place;
  }

  #add(op: number): number {
    this.#count();
    return this.#noted(this.instructions.add(op));
  }

  #share(op: number): number {
    this.#count();
    return this.#noted(this.instructions.share(op));
  }

  #noted(place: number): number {
    this.alike[place] ??= place;
    return place;
  }

  /** Counts what is written again, too: it takes as long. */
  #count(): void {
    this.#work.spend(1 / instructionsAStep);
    if (++this.#written <= grammarPlacesMax) return;
    throw new InputError(
      `The reply's form takes more than ${grammarPlacesMax} instructions: ` +
        "fewer or smaller repeats, or less of everything, would fit.",
    );
  }

  /** Where the expression is read from, if `next` is where it goes on. */
  #write(expression: Expression, next: number): number {
    this.#work.spend(1 / partsAStep);
    switch (expression.kind) {
      case "text":
        return this.#text(expression.text, next);
      case "set":
        return this.#set(expression.set, next);
      case "sequence":
        return expression.parts.reduceRight((to, part) => this.#write(part, to), next);
      case "either":
        return this.#split(expression.options.map((option) => this.#write(option, next)));
      case "repeat":
        return this.#repeat(expression.body, expression.least, expression.most, next);
      case "rule": {
        const entry = this.#entry(expression.name);
        // What would only return behind a rule goes there and doesn't come back.
        if (next === returnPlace) return entry;
        this.instructions.target(entry);
        this.instructions.target(next);
        return this.#share(ops.call);
      }
    }
  }

  #text(written: string, next: number): number {
    let to = next;
    if (ascii.test(written)) {
      for (let at = written.length - 1; at >= 0; at--) to = this.#byte(written.charCodeAt(at), to);
    } else {
      for (const byte of encoder.encode(written).reverse()) to = this.#byte(byte, to);
    }
    return to;
  }

  #byte(byte: number, next: number): number {
    this.instructions.target(next, byte, byte);
    return this.#share(ops.read);
  }

  #split(places: readonly number[]): number {
    const nexts = new Set(places);
    if (nexts.size === 1) return places[0]!;
    for (const next of nexts) this.instructions.target(next);
    return this.#share(ops.split);
  }

  #set(set: CodeSet, next: number): number {
    const branches = this.#sets.get(set) ?? utf8Branches(set);
    this.#sets.set(set, branches);
    return this.#branches(branches, next);
  }

  #branches(branches: readonly ByteBranch[], next: number): number {
    const places = branches.map(({ behind }) =>
      behind.length > 0 ? this.#branches(behind, next) : next,
    );
    for (const [at, { first, last }] of branches.entries()) {
      this.instructions.target(places[at]!, first, last);
    }
    return this.#share(ops.read);
  }

  #repeat(body: Expression, least: number, most: number | null, next: number): number {
    let entry = next;
    let copies = most ?? 0;
    if (most === null) {
      this.instructions.target(next);
      this.instructions.target(next);
      const loop = this.#add(ops.split);
      const again = this.#write(body, loop);
      if (again !== loop) this.instructions.setTarget(loop, 0, again);
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
    const op = this.instructions.opAt(place);
    if (op !== ops.read && op !== ops.call) return;
    if ((!endless && left <= this.#reach) || (needed > 0 && needed <= this.#reach)) return;
    const which = needed > 0 ? 1 : 0;
    firsts[which] ??= place;
    this.alike[place] = firsts[which];
  }
}
