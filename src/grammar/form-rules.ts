import { InputError } from "../errors.ts";
import { choicesMax } from "../limits.ts";
import { readEbnf } from "./ebnf.ts";
import { type Expression, type Rules, texts } from "./expressions.ts";
import type { FormWork } from "./form-work.ts";
import { SchemaReader } from "./json-schema.ts";
import { JsonText } from "./json-text.ts";
import { readRegex, whole } from "./regex.ts";
import type { GrammarSpec } from "./spec.ts";
import { callRules } from "./tool-calls.ts";

/**
 * What a description says, as rules of which `root` is the first.
 * @throws InputError
 */
export function rulesOf(spec: GrammarSpec, work: FormWork): Rules {
  const rules: Rules = new Map();
  switch (spec.kind) {
    case "jsonObject":
      return rules.set("root", new JsonText(rules).object);
    case "jsonSchema": {
      const reader = new SchemaReader(spec.schema, rules, new JsonText(rules, work));
      rules.set("root", reader.expression({ schema: spec.schema, at: "#" }));
      reader.finish();
      return rules;
    }
    case "regex":
      return rules.set("root", whole(readRegex(spec.pattern)));
    case "choice":
      return rules.set("root", choice(spec.choices));
    case "ebnf":
      return readEbnf(spec.grammar);
    case "calls":
      return callRules(spec.tools, spec.parallel, work);
  }
}

function choice(choices: readonly string[]): Expression {
  if (choices.length > choicesMax) {
    throw new InputError(`There are ${choices.length} choices; ${choicesMax} are the most.`);
  }
  if (!choices.every((each) => each.isWellFormed())) {
    throw new InputError("A choice has half a surrogate pair.");
  }
  return texts(choices);
}
