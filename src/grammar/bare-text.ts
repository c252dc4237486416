import { InputError } from "../errors.ts";
import { shown } from "../json.ts";
import {
  callClosing,
  functionClosing,
  parameterClosing,
  parameterOpening,
} from "../text/call-tags.ts";
import { avoiding } from "./avoid.ts";
import { codeSet, codesOf, complement, without } from "./code-points.ts";
import {
  type Expression,
  either,
  nothing,
  oneOf,
  type Rules,
  repeat,
  sequence,
  text,
  texts,
} from "./expressions.ts";
import { readRegex, searched } from "./regex.ts";
import type { StringForm } from "./string-form.ts";

/** What ends a parameter's value, wherever it stands. */
const closings: readonly string[] = [
  parameterClosing,
  `\n${parameterOpening}`,
  `\n${functionClosing}\n${callClosing}`,
];
const anything = complement(codeSet([]));
/** What no closing begins with but for a newline before it. */
const plain = without(anything, codesOf("<"));

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
      avoiding(this.#rules, "bare free", closings, anything, [], before);
    if (!this.#notJson) return free("\n");
    const first = without(plain, codesOf("{[ \t\n\r"));
    return either(text(""), sequence(oneOf(first), free("")));
  }

  sized(least: number, most: number | null): Expression {
    return repeat(oneOf(plain), least, most);
  }

  matching(pattern: string): Expression {
    return withoutTags(searched(readRegex(pattern)));
  }

  among(values: readonly string[]): Expression {
    for (const value of values) {
      if (!closings.some((closing) => `\n${value}`.includes(closing))) continue;
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
