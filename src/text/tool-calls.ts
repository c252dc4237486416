import { isRecord, ownValue } from "../json.ts";

/** A tool as requests offer it (OpenAI's shape). */
export interface ToolSpec {
  readonly type: "function";
  readonly function: {
    readonly name: string;
    readonly description?: string;
    /** JSON schema of the arguments, an object's. */
    readonly parameters?: Readonly<Record<string, unknown>>;
  };
}

/** Schemas that are looked into for one parameter: references may make a graph of any size. */
const schemaVisitsMax = 1000;

/** The JSON types that a schema allows, gathered from type, enum, const, unions and local $refs. */
function typesOf(schema: unknown, root: unknown): Set<string> {
  const types = new Set<string>();
  const seen = new Set<unknown>();
  const open = [schema];
  while (open.length > 0 && seen.size < schemaVisitsMax) {
    const next = open.pop();
    if (!isRecord(next) || seen.has(next)) continue;
    seen.add(next);
    const { type, enum: choices, const: only, anyOf, oneOf, allOf, $ref: ref } = next;
    const named = (Array.isArray(type) ? type : [type]).filter((name) => typeof name === "string");
    for (const name of named) types.add(name);
    if (named.length > 0) continue;
    const values = only !== undefined ? [only] : Array.isArray(choices) ? choices : [];
    for (const value of values) types.add(typeOfValue(value));
    open.push(...[anyOf, oneOf, allOf].flatMap((list) => (Array.isArray(list) ? list : [])));
    if (typeof ref === "string") open.push(resolve(ref, root));
  }
  return types;
}

/** A `#/$defs/…` reference; anything else is not followed. */
function resolve(ref: string, root: unknown): unknown {
  if (!ref.startsWith("#/")) return undefined;
  let at = root;
  for (const step of ref.slice(2).split("/")) {
    const key = step.replaceAll("~1", "/").replaceAll("~0", "~");
    at = isRecord(at) ? ownValue(at, key) : undefined;
  }
  return at;
}

function typeOfValue(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

/** JSON's words and Python's, in any case. */
const jsonWords: ReadonlyMap<string, string> = new Map([
  ["true", "true"],
  ["false", "false"],
  ["null", "null"],
  ["none", "null"],
]);

/** The JSON types that a parameter may have; none where nothing says. */
export type ArgumentTypes = (parameter: string) => ReadonlySet<string>;

/** What a tool's schema says of its parameters. Of a tool that wasn't offered nothing is known. */
export function argumentTypes(tools: readonly ToolSpec[], name: string): ArgumentTypes {
  const schema = tools.find((tool) => tool.function.name === name)?.function.parameters;
  const properties = schema === undefined ? undefined : ownValue(schema, "properties");
  return (parameter) => {
    const own = isRecord(properties) ? ownValue(properties, parameter) : undefined;
    return typesOf(own, schema);
  };
}

/** Types that are taken where a string may stand too. */
const unlikeStrings: readonly string[] = ["null", "object", "array"];

/** Whether an argument of these types is a string, whatever its text. */
export function isAlwaysString(types: ReadonlySet<string>): boolean {
  if (types.size === 0) return true;
  return types.has("string") && !unlikeStrings.some((type) => types.has(type));
}

/**
 * An argument's JSON text, from its text as the model wrote it. A string stays one even if it looks
 * like a number; other types are JSON, or Python's True, False and None; what is none of them, or
 * has no types, is a string.
 */
export function argumentJson(text: string, types: ReadonlySet<string>): string {
  const asString = JSON.stringify(text);
  if (isAlwaysString(types)) return asString;
  const trimmed = text.trim();
  const json = jsonWords.get(trimmed.toLowerCase()) ?? trimmed;
  let type: string;
  try {
    type = typeOfValue(JSON.parse(json));
  } catch {
    return asString;
  }
  // The model writes strings bare, so only what could hardly be meant as one is taken otherwise.
  const fits = types.has("string")
    ? unlikeStrings.includes(type) && types.has(type)
    : types.has(type) || type === "null" || (type === "number" && types.has("integer"));
  // The model's own spelling is kept: parsed and printed again, a long integer would lose digits.
  return fits ? json : asString;
}
