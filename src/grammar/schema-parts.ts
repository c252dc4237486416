import { InputError } from "../errors.ts";
import { isRecord, shown } from "../json.ts";
import { grammarRepeatsMax } from "../limits.ts";
import type { Expression, Rules } from "./expressions.ts";
import type { JsonText } from "./json-text.ts";
import type { Repeats } from "./pattern-reader.ts";

/** A schema that is an object, or a part of one. */
export type SchemaRecord = Readonly<Record<string, unknown>>;

/** A schema, and where it stands, as a reference would be written. */
export interface SchemaAt {
  readonly schema: unknown;
  readonly at: string;
}

/** What makes rules of a schema gives the schemas inside of it to. */
export interface SchemaContext {
  readonly json: JsonText;
  readonly rules: Rules;
  /** The JSON texts of what a schema takes. */
  expression(place: SchemaAt): Expression;
  /** A name for one more rule, which must be given. */
  newName(): string;
}

/** What is held to. Other keywords say something about a schema, or are no JSON schema's. */
const keywords: ReadonlySet<string> = new Set([
  ...["type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref"],
  ...["properties", "required", "additionalProperties"],
  ...["items", "prefixItems", "minItems", "maxItems"],
  ...["minLength", "maxLength", "pattern", "format"],
  ...["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"],
]);
/** What would change which values are valid, and is not held to. */
const refused: ReadonlySet<string> = new Set([
  ...["not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies"],
  ...["patternProperties", "propertyNames", "minProperties", "maxProperties"],
  ...["unevaluatedProperties", "unevaluatedItems", "additionalItems"],
  ...["contains", "minContains", "maxContains", "uniqueItems", "multipleOf"],
  ...["$dynamicRef", "$recursiveRef"],
]);

/**
 * A schema's keywords that are held to.
 * @param at where the schema stands, for messages
 * @throws InputError naming one that can't be
 */
export function constraintsOf(schema: SchemaRecord, at: string): SchemaRecord {
  const held: [string, unknown][] = [];
  for (const [keyword, value] of Object.entries(schema)) {
    const asksNothing = keyword === "uniqueItems" && value === false;
    if (refused.has(keyword) && !asksNothing) fail(at, `${shown(keyword)} is not supported`);
    if (keywords.has(keyword)) held.push([keyword, value]);
  }
  return Object.fromEntries(held);
}

/** A schema without what only tells something about it. */
export const withoutNotes = (schema: unknown): unknown =>
  isRecord(schema)
    ? Object.fromEntries(
        Object.entries(schema).filter(([key]) => keywords.has(key) || refused.has(key)),
      )
    : schema;

export function fail(at: string, problem: string): never {
  throw new InputError(`The schema can't be used: ${problem} (at ${at}).`);
}

/** A `type` as a list, whatever is in it. */
export const typeList = (type: unknown): readonly unknown[] =>
  Array.isArray(type) ? type : [type];

/** A keyword that counts something; null where it is absent. */
function countOf(schema: SchemaRecord, keyword: string, at: string): number | null {
  const count = schema[keyword];
  if (count === undefined) return null;
  if (Number.isSafeInteger(count) && (count as number) >= 0) return count as number;
  return fail(at, `${keyword} must be a whole number from 0 on, not ${shown(count)}`);
}

/** How many of something there may be: of what may be more than can be held to, fewer. */
export function countsOf(
  schema: SchemaRecord,
  [leastKeyword, mostKeyword]: readonly [string, string],
  at: string,
): Repeats {
  const least = countOf(schema, leastKeyword, at) ?? 0;
  const most = countOf(schema, mostKeyword, at);
  if (least > grammarRepeatsMax) fail(at, `${leastKeyword} can be ${grammarRepeatsMax} at most`);
  return { least, most: most === null ? null : Math.min(most, grammarRepeatsMax) };
}
