import { InputError } from "../errors.ts";
import { otherNameLettersMax } from "../limits.ts";
import { type CodeSet, codeSet, codesOf, common, without } from "./code-points.ts";
import {
  type Expression,
  either,
  many,
  nothing,
  oneOf,
  type Rules,
  rule,
  sequence,
  text,
} from "./expressions.ts";
import type { FormWork } from "./form-work.ts";

/** Steps to tell the names that go on with a letter from others. */
const letterSteps = 5;
const ascii = codeSet([[0, 0x7f]]);

/** Tells the names that an object's other members may have from those that it gives. */
export class OtherNames {
  /** Names are made of these; apart, because few names have others than ASCII. */
  readonly #ascii: CodeSet;
  readonly #others: CodeSet;
  readonly #work: FormWork;
  readonly #rest: Expression = rule("json rest of name");
  #count = 0;

  /** @param letters what names are made of */
  constructor(rules: Rules, letters: CodeSet, work: FormWork) {
    this.#work = work;
    this.#ascii = common(letters, ascii);
    this.#others = without(letters, ascii);
    rules.set("json rest of name", many(oneOf(letters)));
  }

  /**
   * Any name but these.
   * @throws InputError where they are too many, of all that were asked for
   */
  unlike(names: readonly string[]): Expression {
    return this.#unlike(names.map((name) => Array.from(name)));
  }

  /** @param names the letters that are left of those names that have begun */
  #unlike(names: readonly (readonly string[])[]): Expression {
    const byLetter = new Map<string, (readonly string[])[]>();
    for (const [letter, ...rest] of names) {
      if (letter === undefined) continue;
      const some = byLetter.get(letter);
      if (some) some.push(rest);
      else byLetter.set(letter, [rest]);
    }
    this.#count += byLetter.size;
    this.#work.spend(letterSteps * byLetter.size);
    if (this.#count > otherNameLettersMax) {
      throw new InputError(
        "The schema can't be used: its properties have too many names for others to be told " +
          "from them. additionalProperties: false would do without that.",
      );
    }
    const begun = codesOf([...byLetter.keys()].join(""));
    const differs = sequence(
      either(oneOf(without(this.#ascii, begun)), oneOf(unless(this.#others, begun))),
      this.#rest,
    );
    const branches = Array.from(byLetter, ([letter, rest]) =>
      sequence(text(letter), this.#unlike(rest)),
    );
    const endsHere = names.some(({ length }) => length === 0);
    return either(differs, ...branches, endsHere ? nothing : text(""));
  }
}

/** What is in a set and not in the other: the set itself where they have nothing in common. */
const unless = (set: CodeSet, taken: CodeSet): CodeSet =>
  common(set, taken).length === 0 ? set : without(set, taken);
