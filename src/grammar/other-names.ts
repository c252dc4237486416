import { InputError } from "../errors.ts";
import { otherNameLettersMax } from "../limits.ts";
import { type CodeSet, codesOf, without } from "./code-points.ts";
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

/** Tells the names that an object's other members may have from those that it gives. */
export class OtherNames {
  readonly #letters: CodeSet;
  readonly #rest: Expression = rule("json rest of name");
  #count = 0;

  /** @param letters what names are made of */
  constructor(rules: Rules, letters: CodeSet) {
    this.#letters = letters;
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
    if (this.#count > otherNameLettersMax) {
      throw new InputError(
        "The schema can't be used: its properties have too many names for others to be told " +
          "from them. additionalProperties: false would do without that.",
      );
    }
    const others = without(this.#letters, codesOf([...byLetter.keys()].join("")));
    const differs = sequence(oneOf(others), this.#rest);
    const branches = Array.from(byLetter, ([letter, rest]) =>
      sequence(text(letter), this.#unlike(rest)),
    );
    const endsHere = names.some(({ length }) => length === 0);
    return either(differs, ...branches, endsHere ? nothing : text(""));
  }
}
