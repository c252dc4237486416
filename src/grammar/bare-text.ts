import { InputError } from "../errors.ts";
import { shown } from "../json.ts";
import { valueClosings } from "../text/call-body.ts";
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
  sequence,
  text,
  texts,
} from "./expressions.ts";
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
  readonly #notJson: boolean;

  /** @param notJson whether what begins as an object or a list would be read as one */
  constructor(rules: Rules, notJson: boolean) {
    this.#rules = rules;
    this.#notJson = notJson;
  }

  any(): Expression {
    // A value stands on a line of its own.
    const free = (before: string) =>
      avoiding(this.#rules, "bare free", valueClosings, anything, [], before);
    if (!this.#notJson) return free("\n");
    return either(text(""), sequence(oneOf(notOpening), free("")));
  }

  sized(least: number, most: number | null): Expression {
    if (!this.#notJson || most === 0) return repeat(oneOf(plain), least, most);
    const others = repeat(oneOf(plain), Math.max(0, least - 1), most === null ? null : most - 1);
    const some = sequence(oneOf(notOpening), others);
    return least === 0 ? optional(some) : some;
  }

  matching(pattern: string): Expression {
    if (this.#notJson) throw new InputError("What matches a pattern could be read as JSON.");
    return withoutTags(searched(readRegex(pattern)));
  }

  among(values: readonly string[]): Expression {
    for (const value of values) {
      if (!valueClosings.some((closing) => `\n${value}`.includes(closing))) continue;
      throw new InputError(`A call's argument can't be ${shown(value)}, which ends its parameter.`);
    }
    return texts(values);
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
