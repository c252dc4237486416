import { InputError } from "../errors.ts";
import { shown } from "../json.ts";
import { grammarRepeatsMax, jsonDepthMax } from "../limits.ts";
import { type CodeRange, type CodeSet, codeSet, codesOf, complement } from "./code-points.ts";

/** How often something comes; `most` is null where there is no bound. */
export interface Repeats {
  readonly least: number;
  readonly most: number | null;
}

const digits = codesOf("0123456789");
const word = codeSet([...digits, ...codesOf("_"), [0x41, 0x5a], [0x61, 0x7a]]);
const space = codesOf("\t\n\v\f\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff");
/** What JavaScript trims. */
export const spaces: CodeSet = codeSet([...space, [0x2000, 0x200a]]);

/** The classes that a backslash and a letter stand for, as JavaScript has them. */
const classes: ReadonlyMap<string, CodeSet> = new Map([
  ["d", digits],
  ["D", complement(digits)],
  ["w", word],
  ["W", complement(word)],
  ["s", spaces],
  ["S", complement(spaces)],
]);
const controls: ReadonlyMap<string, string> = new Map([
  ["n", "\n"],
  ["r", "\r"],
  ["t", "\t"],
  ["f", "\f"],
  ["v", "\v"],
  ["0", "\0"],
]);
/** How many hex digits stand behind a letter for a code point. */
const hexDigits: ReadonlyMap<string, number> = new Map([
  ["x", 2],
  ["u", 4],
  ["U", 8],
]);

/** What regexes and EBNF have in common: characters, classes and repeats, read from left to right. */
export class PatternReader {
  readonly #name: string;
  readonly #letters: readonly string[];
  #at = 0;
  #depth = 0;

  /** @param name what is read, for messages */
  constructor(name: string, written: string) {
    this.#name = name;
    this.#letters = Array.from(written);
    if (!written.isWellFormed()) this.fail("has half a surrogate pair");
  }

  get ended(): boolean {
    return this.#at === this.#letters.length;
  }

  /** What comes next, without taking it: a character, or fewer at the end. */
  peek(count = 1): string {
    return this.#letters.slice(this.#at, this.#at + count).join("");
  }

  take(): string {
    if (this.ended) this.fail("ends too early");
    return this.#letters[this.#at++]!;
  }

  /** Takes a text where it comes next. */
  skip(expected: string): boolean {
    const { length } = Array.from(expected);
    if (this.peek(length) !== expected) return false;
    this.#at += length;
    return true;
  }

  /** Takes characters as long as they match. */
  takeWhile(matches: RegExp): string {
    let taken = "";
    while (!this.ended && matches.test(this.peek())) taken += this.take();
    return taken;
  }

  /** Where the reader is, to come back to with `rewind`. */
  get mark(): number {
    return this.#at;
  }

  rewind(mark: number): void {
    this.#at = mark;
  }

  fail(problem: string): never {
    throw new InputError(`The ${this.#name} ${problem}, at character ${this.#at + 1}.`);
  }

  /** Reads what is inside of brackets, which may nest only so deep. */
  nested<T>(read: () => T): T {
    if (++this.#depth > jsonDepthMax) this.fail(`nests deeper than ${jsonDepthMax} levels`);
    const inside = read();
    this.#depth--;
    return inside;
  }

  /** Behind a backslash: a class, or a character by its code or as it is. */
  readEscape(): CodeSet | string {
    const letter = this.take();
    const named = classes.get(letter) ?? controls.get(letter);
    if (named !== undefined) return named;
    const count = hexDigits.get(letter);
    if (count !== undefined) return this.#readCode(count);
    if (/[\p{L}\p{N}]/u.test(letter)) this.fail(`has the unknown escape ${shown(`\\${letter}`)}`);
    return letter;
  }

  #readCode(count: number): string {
    const code = this.#readHex(count);
    const isHigh = code >= 0xd800 && code <= 0xdbff;
    const units = isHigh && this.skip("\\u") ? [code, this.#readHex(4)] : [code];
    const letter = code > 0xffff ? String.fromCodePoint(code) : String.fromCharCode(...units);
    if (!letter.isWellFormed()) this.fail("has half a surrogate pair");
    return letter;
  }

  #readHex(count: number): number {
    const braced = count === 4 && this.skip("{");
    let hex = "";
    while (braced ? !this.skip("}") : hex.length < count) hex += this.take();
    const code = /^[0-9a-f]{1,8}$/i.test(hex) ? Number.parseInt(hex, 16) : Number.NaN;
    if (!(code <= 0x10ffff)) this.fail(`has the code ${shown(hex)}, which is no character's`);
    return code;
  }

  /** Behind `[`: a class up to its `]`. */
  readClass(): CodeSet {
    const negated = this.skip("^");
    const ranges: CodeRange[] = [];
    while (!this.skip("]")) {
      const first = this.#readMember();
      if (typeof first !== "string") {
        ranges.push(...first);
        continue;
      }
      const ranged = this.peek() === "-" && this.peek(2) !== "-]";
      if (ranged) this.take();
      const last = ranged ? this.#readMember() : first;
      if (typeof last !== "string") this.fail("has a range of characters that ends in a class");
      if (last.codePointAt(0)! < first.codePointAt(0)!) {
        this.fail(`has the range ${shown(`${first}-${last}`)}, which is out of order`);
      }
      ranges.push([first.codePointAt(0)!, last.codePointAt(0)!]);
    }
    return negated ? complement(codeSet(ranges)) : codeSet(ranges);
  }

  #readMember(): CodeSet | string {
    if (this.skip("[:")) this.fail("has a POSIX class, which is not supported");
    return this.skip("\\") ? (this.skip("b") ? "\b" : this.readEscape()) : this.take();
  }

  /** A quantifier, or null where none comes next. */
  readRepeats(): Repeats | null {
    if (this.skip("*")) return { least: 0, most: null };
    if (this.skip("+")) return { least: 1, most: null };
    if (this.skip("?")) return { least: 0, most: 1 };
    const before = this.mark;
    if (!this.skip("{")) return null;
    const least = this.takeWhile(/[0-9]/);
    const listed = this.skip(",");
    const most = listed ? this.takeWhile(/[0-9]/) : least;
    if (!this.skip("}") || least + most === "") {
      this.rewind(before);
      return null;
    }
    if (least === "") this.fail("has a repeat that doesn't say how often at least");
    const repeats = { least: Number(least), most: most === "" ? null : Number(most) };
    if (Math.max(repeats.least, repeats.most ?? 0) > grammarRepeatsMax) {
      this.fail(`repeats more than ${grammarRepeatsMax} times`);
    }
    if (repeats.most !== null && repeats.most < repeats.least) {
      this.fail("repeats fewer times at most than at least");
    }
    return repeats;
  }
}
