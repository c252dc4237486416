import { InputError } from "../errors.ts";
import { isRecord, shown } from "../json.ts";
import {
  callClosing,
  callOpening,
  functionClosing,
  functionOpening,
  parameterClosing,
  parameterOpening,
} from "../text/call-tags.ts";
import { argumentTypes, type ToolSpec } from "../text/tool-calls.ts";
import { BareText } from "./bare-text.ts";
import {
  type Expression,
  either,
  many,
  nothing,
  optional,
  type Rules,
  rule,
  sequence,
  text,
} from "./expressions.ts";
import { type FormWork, tooComplexCode } from "./form-work.ts";
import { type Property, propertiesOf } from "./json-objects.ts";
import { SchemaReader } from "./json-schema.ts";
import { JsonText } from "./json-text.ts";
import { withoutNotes } from "./schema-parts.ts";

/** Steps to place a parameter among the others. */
const parameterSteps = 10;

/**
 * Calls as the chat template writes them, which are read back (`text/call-body.ts`) as calls of these
 * tools, with parameters in the order of their schemas.
 * @param parallel whether there may be several
 * @throws InputError for a name that can't be written
 */
export function callRules(tools: readonly ToolSpec[], parallel: boolean, work: FormWork): Rules {
  const rules: Rules = new Map();
  const json = new JsonText(rules, work, parameterClosing);
  const known: KnownValues = new Map();
  const calls = tools.map((tool) => new ToolRules(tool, rules, json, known).expression());
  rules.set("call", sequence(text(`${callOpening}\n`), either(...calls), text(`\n${callClosing}`)));
  const more = many(sequence(text("\n"), rule("call")));
  rules.set("root", sequence(rule("call"), parallel ? more : text("")));
  return rules;
}

/** Values by what their schemas say: those of many tools say the same. */
type KnownValues = Map<string, Expression>;

class ToolRules {
  readonly #tool: ToolSpec;
  readonly #rules: Rules;
  readonly #json: JsonText;
  readonly #known: KnownValues;

  constructor(tool: ToolSpec, rules: Rules, json: JsonText, known: KnownValues) {
    this.#tool = tool;
    this.#rules = rules;
    this.#json = json;
    this.#known = known;
  }

  expression(): Expression {
    const { name, parameters } = this.#tool.function;
    const properties = isRecord(parameters) ? propertiesOf(parameters, "#") : [];
    const written = properties.map((property) => {
      const opening = text(`${parameterOpening}${label(property.name)}>\n`);
      const parameter = sequence(opening, this.#value(property), text(`\n${parameterClosing}\n`));
      return property.required ? parameter : optional(parameter);
    });
    const opening = text(`${functionOpening}${label(name)}>\n`);
    return sequence(opening, ...written, text(functionClosing));
  }

  /** A value, in a text that is read back as what its schema takes. */
  #value(property: Property): Expression {
    this.#json.work.spend(parameterSteps);
    const types = argumentTypes([this.#tool], this.#tool.function.name)(property.name);
    const key = JSON.stringify([...types, withoutNotes(property.schema)]);
    const known = this.#known.get(key);
    // What a reference names, this tool alone says.
    if (known && !key.includes('"$ref"')) return known;
    const value = this.#newValue(property, types);
    this.#known.set(key, value);
    return value;
  }

  #newValue(property: Property, types: ReadonlySet<string>): Expression {
    const bare = new BareText(this.#rules, this.#json.work, types);
    if (types.size === 0) return this.#held(property, ["string"], bare);
    const others = [...types].filter((type) =>
      types.has("string") ? ["null", "object", "array"].includes(type) : true,
    );
    return either(
      types.has("string") ? this.#held(property, ["string"], bare) : nothing,
      others.length > 0 ? this.#held(property, others, bare) : nothing,
    );
  }

  /** What a schema takes of some types; all of these types where it can't be held to. */
  #held({ schema, at }: Property, types: readonly string[], bare: BareText): Expression {
    const reader = new SchemaReader(this.#tool.function.parameters, this.#rules, this.#json);
    try {
      const held = reader.expression({ schema: { allOf: [schema, { type: types }] }, at }, bare);
      reader.finish();
      return held;
    } catch (cause) {
      if (!(cause instanceof InputError) || cause.code === tooComplexCode) throw cause;
      return either(...types.map((type) => this.#any(type, bare)));
    }
  }

  #any(type: string, bare: BareText): Expression {
    const { object, array, number, integer } = this.#json;
    const words = either(text("true"), text("false"));
    const all = { object, array, number, integer, string: bare.any(), boolean: words };
    return type === "null" ? text("null") : (all[type as keyof typeof all] ?? nothing);
  }
}

/** A name as the markup has it. */
function label(name: string): string {
  if (/^[^<>\n]+$/.test(name) && name.trim() === name) return name;
  throw new InputError(`A call can't write the name ${shown(name)}.`);
}
