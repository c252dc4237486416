import { isRecord, ownValue, shown } from "../json.ts";
import { propertyNameCharsMax } from "../limits.ts";
import { type Expression, either, nothing, rule, sequence, text } from "./expressions.ts";
import { fail, type SchemaContext, type SchemaRecord } from "./schema-parts.ts";

/** Steps to place a property among the others. */
const propertySteps = 4;

/** A property that a schema names. */
export interface Property {
  readonly name: string;
  readonly schema: unknown;
  readonly at: string;
  readonly required: boolean;
}

/**
 * The properties of a schema, in its order; those that must come though nothing else says of them come
 * last, and are what others may be.
 * @throws InputError
 */
export function propertiesOf(schema: SchemaRecord, at: string): readonly Property[] {
  const { properties = {}, required = [], additionalProperties = true } = schema;
  if (!isRecord(properties)) fail(at, "properties must be an object of schemas");
  if (!Array.isArray(required) || !required.every((name) => typeof name === "string")) {
    fail(at, "required must be a list of names");
  }
  const names = new Set([...Object.keys(properties), ...required]);
  const needed = new Set(required);
  return Array.from(names, (name) => {
    if (name.length > propertyNameCharsMax) {
      fail(at, `the name ${shown(name)} has more than ${propertyNameCharsMax} characters`);
    }
    const required = needed.has(name);
    const schema = ownValue(properties, name);
    if (schema !== undefined) return { name, schema, at: `${at}/properties/${name}`, required };
    return { name, schema: additionalProperties, at: `${at}/additionalProperties`, required };
  });
}

/**
 * Objects of a schema: its properties in their order, then others, where it takes them.
 * @throws InputError
 */
export function objectOf(reader: SchemaContext, schema: SchemaRecord, at: string): Expression {
  const { json, rules } = reader;
  const { additionalProperties: others = true } = schema;
  const properties = propertiesOf(schema, at);
  const comma = sequence(text(","), json.gap);
  const other =
    others === false
      ? nothing
      : sequence(
          json.otherName(properties.map(({ name }) => name)),
          reader.expression({ schema: others, at: `${at}/additionalProperties` }),
        );
  /** What comes behind a member, and where none came: rules, because both lead to the next. */
  let more = rule(reader.newName());
  rules.set(more.name, either(text(""), sequence(comma, other, more)));
  let first: Expression = either(text(""), sequence(other, more));
  json.work.spend(propertySteps * properties.length);
  for (const { name, required, ...place } of [...properties].reverse()) {
    const member = rule(reader.newName());
    const behind = sequence(text(json.fixed(name)), json.colon, reader.expression(place), more);
    rules.set(member.name, behind);
    const skipped = required ? [] : [more];
    const notBegun = required ? [] : [first];
    more = rule(reader.newName());
    rules.set(more.name, either(sequence(comma, member), ...skipped));
    first = rule(reader.newName());
    rules.set(first.name, either(member, ...notBegun));
  }
  return json.bracketed("{", first, "}");
}
