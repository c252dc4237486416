import { isRecord, shown } from "../json.ts";
import { type Expression, either, nothing, type Rules, rule, text, texts } from "./expressions.ts";
import { arrayOf } from "./json-arrays.ts";
import { numberOf } from "./json-numbers.ts";
import { objectOf } from "./json-objects.ts";
import { stringOf } from "./json-strings.ts";
import type { JsonText } from "./json-text.ts";
import { SchemaJoiner } from "./schema-joiner.ts";
import {
  fail,
  type SchemaAt,
  type SchemaContext,
  type SchemaRecord,
  typeList,
} from "./schema-parts.ts";
import type { StringForm } from "./string-form.ts";

/** Steps to read a schema, and listed values that are read in a step. */
const schemaSteps = 10;
const valuesAStep = 2;

/**
 * Turns the schemas of one document into rules. Of oneOf, as of anyOf, one schema must take a value:
 * whether another takes it too is not looked at.
 */
export class SchemaReader implements SchemaContext {
  readonly json: JsonText;
  readonly rules: Rules;
  readonly #joiner: SchemaJoiner;
  readonly #names = new Map<StringForm, Map<unknown, string>>();
  readonly #open: { readonly name: string; readonly place: SchemaAt; readonly form: StringForm }[] =
    [];

  /** @param root what references begin in */
  constructor(root: unknown, rules: Rules, json: JsonText) {
    this.#joiner = new SchemaJoiner(root, json.work);
    this.rules = rules;
    this.json = json;
  }

  /**
   * The JSON texts of what a schema takes, once `finish` has been called.
   * @param form of strings that are the whole value
   */
  expression(place: SchemaAt, form: StringForm = this.json): Expression {
    const names = this.#names.get(form) ?? new Map<unknown, string>();
    this.#names.set(form, names);
    const known = names.get(place.schema);
    if (known !== undefined) return rule(known);
    const name = this.newName();
    names.set(place.schema, name);
    // A queue, for schemas may name one another in chains of any length.
    this.#open.push({ name, place, form });
    return rule(name);
  }

  newName(): string {
    const name = `schema ${this.rules.size}`;
    this.rules.set(name, nothing);
    return name;
  }

  /**
   * Reads all schemas that were asked for, and those in them.
   * @throws InputError
   */
  finish(): void {
    for (let next = this.#open.pop(); next; next = this.#open.pop()) {
      this.rules.set(next.name, this.#read(next.place, next.form));
    }
  }

  #read(place: SchemaAt, form: StringForm): Expression {
    const { schema, at } = place;
    this.json.work.spend(schemaSteps);
    if (schema === true) return this.json.value;
    if (schema === false) return nothing;
    const target = this.#joiner.targetOf(place);
    if (target) return this.expression(target, form);
    const { anyOf, oneOf, ...others } = this.#joiner.join(place);
    if (anyOf !== undefined && oneOf !== undefined) fail(at, "it has both anyOf and oneOf");
    if (anyOf === undefined && oneOf === undefined) return this.#single(others, at, form);
    const keyword = anyOf === undefined ? "oneOf" : "anyOf";
    const options = anyOf ?? oneOf;
    if (!Array.isArray(options)) fail(at, `${keyword} must be a list of schemas`);
    const alone = Object.keys(others).length === 0;
    return either(
      ...options.map((option: unknown, index) => {
        const joined = alone ? option : { allOf: [others, option] };
        return this.expression({ schema: joined, at: `${at}/${keyword}/${index}` }, form);
      }),
    );
  }

  #single(schema: SchemaRecord, at: string, form: StringForm): Expression {
    if (schema["enum"] !== undefined || schema["const"] !== undefined) {
      const values = listedValues(schema, at);
      this.json.work.spend(values.length / valuesAStep);
      const strings = values.filter((value) => typeof value === "string");
      const others = values.filter((value) => typeof value !== "string");
      return either(form.among(strings), texts(others.map((value) => this.json.fixed(value))));
    }
    const types = schema["type"] === undefined ? impliedTypes(schema) : typeList(schema["type"]);
    if (types === null) return form === this.json ? this.json.value : form.any();
    return either(...types.map((type) => this.#ofType(type, schema, at, form)));
  }

  #ofType(type: unknown, schema: SchemaRecord, at: string, form: StringForm): Expression {
    switch (type) {
      case "string":
        return stringOf(schema, at, form);
      case "number":
      case "integer":
        return numberOf(schema, at, type === "integer", this.json);
      case "object":
        return objectOf(this, schema, at);
      case "array":
        return arrayOf(this, schema, at);
      case "boolean":
        return either(text("true"), text("false"));
      case "null":
        return text("null");
      default:
        return fail(at, `there is no type ${shown(type)}`);
    }
  }
}

/** The values that a schema lists, as far as its type has them. */
function listedValues(schema: SchemaRecord, at: string): readonly unknown[] {
  const { enum: listed, const: only, type, ...others } = schema;
  const [keyword] = Object.keys(others);
  if (keyword !== undefined) fail(at, `${shown(keyword)} can't be together with enum or const`);
  if (listed !== undefined && !Array.isArray(listed)) fail(at, "enum must be a list");
  const values: readonly unknown[] = listed ?? [only];
  const wanted = only === undefined ? null : JSON.stringify(only);
  return values.filter(
    (value) =>
      (wanted === null || JSON.stringify(value) === wanted) &&
      (type === undefined || typeList(type).some((each) => isOfType(value, each))),
  );
}

function isOfType(value: unknown, type: unknown): boolean {
  if (type === "null") return value === null;
  if (type === "array") return Array.isArray(value);
  if (type === "object") return isRecord(value);
  return type === "integer" ? Number.isInteger(value) : typeof value === type;
}

const typesOfKeywords: ReadonlyMap<string, string> = new Map([
  ...["properties", "required", "additionalProperties"].map((key) => [key, "object"] as const),
  ...["items", "prefixItems", "minItems", "maxItems"].map((key) => [key, "array"] as const),
  ...["minLength", "maxLength", "pattern", "format"].map((key) => [key, "string"] as const),
  ...["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"].map(
    (key) => [key, "number"] as const,
  ),
]);

/** A schema without a type takes others too; what it says something about is what was meant. */
function impliedTypes(schema: SchemaRecord): readonly string[] | null {
  const types = new Set(Object.keys(schema).flatMap((key) => typesOfKeywords.get(key) ?? []));
  return types.size > 0 ? [...types] : null;
}
