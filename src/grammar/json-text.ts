import { avoiding } from "./avoid.ts";
import { type CodeSet, codesOf, without } from "./code-points.ts";
import {
  between,
  type Expression,
  either,
  many,
  oneOf,
  optional,
  type Rules,
  repeat,
  rule,
  sequence,
  text,
  texts,
} from "./expressions.ts";
import { FormWork } from "./form-work.ts";
import { asJsonString, escapedLetter, plainLetters } from "./json-letters.ts";
import { OtherNames } from "./other-names.ts";
import { readRegex, searched } from "./regex.ts";
import type { StringForm } from "./string-form.ts";

/** Columns of a line's indent. */
const indentMax = 64;
/** Digits before a number's point, and behind it: what a double holds, and 64-bit integers. */
export const integerDigitsMax = 19;
const fractionDigitsMax = 19;

const digit = between("0", "9");

/**
 * The rules of JSON's text. Space may stand where people and programs put it, and only there: a line's
 * end with an indent, or one space, behind `{`, `[` and `,` and before `}` and `]`; one space behind `:`.
 * Models that may write any number of blanks have been seen to write nothing else.
 */
export class JsonText implements StringForm {
  readonly #rules: Rules;
  /** What no string may hold, as it is written; null: nothing. */
  readonly #avoided: string | null;
  readonly #letters: CodeSet;
  readonly #names: OtherNames;
  /** A string's text without its quotes. */
  readonly #inside = (value: string): string => this.fixed(value).slice(1, -1);
  readonly work: FormWork;
  readonly gap: Expression = rule("json gap");
  readonly colon: Expression = sequence(text(":"), optional(text(" ")));
  readonly value: Expression = rule("json value");
  readonly object: Expression = rule("json object");
  readonly array: Expression = rule("json array");
  readonly number: Expression = rule("json number");
  readonly integer: Expression = rule("json integer");

  /** Adds its rules to others, under names of its own. @param work of those who read schemas with it */
  constructor(rules: Rules, work: FormWork = new FormWork(), avoided: string | null = null) {
    this.#rules = rules;
    this.work = work;
    this.#avoided = avoided;
    // What a word begins with stands in free strings alone, where it is seen how it goes on.
    this.#letters = avoided === null ? plainLetters : without(plainLetters, codesOf(avoided[0]!));
    this.#names = new OtherNames(rules, this.#letters, work);
    const indent = repeat(oneOf(codesOf(" \t")), 0, indentMax);
    rules.set("json gap", either(text(""), text(" "), sequence(text("\n"), indent)));
    rules.set("json letter", either(oneOf(this.#letters), escapedLetter));
    rules.set("json string", this.#quoted(this.#free()));
    const member = sequence(this.any(), this.colon, this.value);
    rules.set("json object", this.bracketed("{", this.list(member), "}"));
    rules.set("json array", this.bracketed("[", this.list(this.value), "]"));
    const natural = sequence(between("1", "9"), repeat(digit, 0, integerDigitsMax - 1));
    // No integer is -0, and most who read it make it 0.
    rules.set("json integer", either(text("0"), sequence(optional(text("-")), natural)));
    const whole = sequence(optional(text("-")), either(text("0"), natural));
    const fraction = sequence(text("."), repeat(digit, 1, fractionDigitsMax));
    const exponent = sequence(
      oneOf(codesOf("eE")),
      optional(oneOf(codesOf("+-"))),
      repeat(digit, 1, 2),
    );
    rules.set("json number", sequence(whole, optional(fraction), optional(exponent)));
    const words = [text("true"), text("false"), text("null")];
    rules.set("json value", either(this.object, this.array, this.any(), this.number, ...words));
  }

  any(): Expression {
    return rule("json string");
  }

  sized(least: number, most: number | null): Expression {
    return this.#once(`json string of ${least} to ${most}`, () =>
      this.#quoted(repeat(rule("json letter"), least, most)),
    );
  }

  matching(pattern: string): Expression {
    this.work.spend(pattern.length);
    return this.#once(`json string like ${pattern}`, () =>
      this.#quoted(asJsonString(searched(readRegex(pattern)), this.#letters, this.#inside)),
    );
  }

  among(values: readonly string[]): Expression {
    return texts(values.map((each) => this.fixed(each)));
  }

  /** The text of one value, without space. */
  fixed(value: unknown): string {
    const written = JSON.stringify(value);
    if (this.#avoided === null) return written;
    const code = this.#avoided.charCodeAt(0).toString(16).padStart(4, "0");
    return written.replaceAll(this.#avoided[0]!, `\\u${code}`);
  }

  /** A name of a member that is none of these, and its colon. Such names have no escapes. */
  otherName(names: readonly string[]): Expression {
    const bare = names.filter((name) => this.#inside(name) === name);
    return sequence(this.#quoted(this.#names.unlike(bare)), this.colon);
  }

  /** Elements with commas between them; none, too. */
  list(element: Expression): Expression {
    const more = sequence(text(","), this.gap, element);
    return optional(sequence(element, many(more)));
  }

  bracketed(open: string, inside: Expression, close: string): Expression {
    return sequence(text(open), this.gap, inside, this.gap, text(close));
  }

  /** What many schemas may say is one rule. */
  #once(name: string, write: () => Expression): Expression {
    if (!this.#rules.has(name)) this.#rules.set(name, write());
    return rule(name);
  }

  #free(): Expression {
    if (this.#avoided === null) return many(either(oneOf(plainLetters), escapedLetter));
    return avoiding(this.#rules, "json free", [this.#avoided], plainLetters, [escapedLetter]);
  }

  #quoted(inside: Expression): Expression {
    return sequence(text('"'), inside, text('"'));
  }
}
