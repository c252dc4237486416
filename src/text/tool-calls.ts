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

/** A parameter as the model wrote it: its name, and its text without the newlines around it. */
export type WrittenParameter = readonly [name: string, text: string];

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

/** One argument's JSON text, by the types its schema allows; what fits none is a string. */
function argumentJson(text: string, types: ReadonlySet<string>): string {
  const asString = JSON.stringify(text);
  if (types.size === 0) return asString;
  const trimmed = text.trim();
  const json = jsonWords.get(trimmed.toLowerCase()) ?? trimmed;
  let type: string;
  try {
    type = typeOfValue(JSON.parse(json));
  } catch {
    return asString;
  }
  if (types.has("string")) {
    // The model writes strings bare, so only what could hardly be meant as one is taken otherwise.
    const unlike = type === "null" || type === "object" || type === "array";
    return unlike && types.has(type) ? json : asString;
  }
  const fits = types.has(type) || (type === "number" && types.has("integer")) || type === "null";
  // The model's own spelling is kept: parsed and printed again, a long integer would lose digits.
  return fits ? json : asString;
}

/**
 * A call's arguments as the text of a JSON object, typed by the tool's schema: a string stays one
 * even if it looks like a number; other types are JSON, or Python's True, False and None; a
 * parameter that the schema doesn't know is a string. Of a name written twice the last counts.
 */
export function argumentsJson(
  tools: readonly ToolSpec[],
  name: string,
  parameters: readonly WrittenParameter[],
): string {
  const schema = tools.find((tool) => tool.function.name === name)?.function.parameters;
  const properties = schema === undefined ? undefined : ownValue(schema, "properties");
  const members = new Map<string, string>();
  for (const [key, text] of parameters) {
    const own = isRecord(properties) ? ownValue(properties, key) : undefined;
    members.set(key, argumentJson(text, typesOf(own, schema)));
  }
  const written = Array.from(members, ([key, json]) => `${JSON.stringify(key)}:${json}`);
  return `{${written.join(",")}}`;
}
