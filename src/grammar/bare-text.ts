import { InputError } from "../errors.ts";
import { valueClosings } from "../text/call-body.ts";
import { argumentJson } from "../text/tool-calls.ts";
import { avoiding } from "./avoid.ts";
import { codeSet, codesOf, complement, without } from "./code-points.ts";
import {
  type Expression,
  either,
  nothing,
  oneOf,
  optional,
  type Rules,
  repeat,
  rule,
  sequence,
  text,
  texts,
} from "./expressions.ts";
import type { FormWork } from "./form-work.ts";
import { spaces } from "./pattern-reader.ts";
import { readRegex, searched } from "./regex.ts";
import type { StringForm } from "./string-form.ts";

const anything = complement(codeSet([]));
/** What no closing begins with but for a newline before it. */
const plain = without(anything, codesOf("<"));
/** Of these, what begins neither an object nor a list, nor the space before one. */
const notOpening = without(plain, codeSet([...codesOf("{["), ...spaces]));

/**
 * Strings as a call's parameters have them: as they are, without quotes, so that nothing in them may end
 * the parameter. Where a string is held to more than that, it has no `<`.
 */
export class BareText implements StringForm {
  readonly #rules: Rules;
  readonly #work: FormWork;
  readonly #types: ReadonlySet<string>;
  /** Whether what begins as an object or a list would be read as one. */
  readonly #notJson: boolean;

  /** @param types that the parameter may have */
  constructor(rules: Rules, work: FormWork, types: ReadonlySet<string>) {
    this.#rules = rules;
    this.#work = work;
    this.#types = types;
    this.#notJson = types.has("object") || types.has("array");
  }

  any(): Expression {
    const name = this.#notJson ? "bare text" : "bare string";
    if (!this.#rules.has(name)) this.#rules.set(name, this.#free());
    return rule(name);
  }

  sized(least: number, most: number | null): Expression {
    if (!this.#notJson || most === 0) return repeat(oneOf(plain), least, most);
    const others = repeat(oneOf(plain), Math.max(0, least - 1), most === null ? null : most - 1);
    const some = sequence(oneOf(notOpening), others);
    return least === 0 ? optional(some) : some;
  }

  matching(pattern: string): Expression {
    if (this.#notJson) throw new InputError("What matches a pattern could be read as JSON.");
    this.#work.spend(pattern.length);
    return withoutTags(searched(readRegex(pattern)));
  }

  /** Of these, what is read back as itself. */
  among(values: readonly string[]): Expression {
    return texts(values.filter((value) => this.#isReadBack(value)));
  }

  #free(): Expression {
    const free = (before: string) =>
      avoiding(this.#rules, "bare free", valueClosings, anything, [], before);
    // A value stands on a line of its own.
    if (!this.#notJson) return free("\n");
    return either(text(""), sequence(oneOf(notOpening), free("")));
  }

  #isReadBack(value: string): boolean {
    if (valueClosings.some((closing) => `\n${value}`.includes(closing))) return false;
    return value.isWellFormed() && argumentJson(value, this.#types) === JSON.stringify(value);
  }
}

function withoutTags(expression: Expression): Expression {
  switch (expression.kind) {
    case "text":
      return expression.text.includes("<") ? nothing : expression;
    case "set":
      return oneOf(without(expression.set, codesOf("<")));
    case "sequence":
      return sequence(...expression.parts.map(withoutTags));
    case "either":
      return either(...expression.options.map(withoutTags));
    case "repeat":
      return { ...expression, body: withoutTags(expression.body) };
    case "rule":
      return expression;
  }
}
