/**
 * Makes `fixtures/openapi/schemas.json`, by which tests judge replies: the schemas of OpenAI's OpenAPI
 * description (github.com/openai/openai-openapi, MIT) that describe what deltafold sends, and those that
 * these refer to, without their prose: `node scripts/trim-openapi.ts openai-openapi.json`.
 */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isRecord } from "../src/json.ts";

const roots = [
  "CreateChatCompletionResponse",
  "CreateChatCompletionStreamResponse",
  "CreateCompletionResponse",
  "ErrorResponse",
  "ListModelsResponse",
  "Model",
  "Response",
  "ResponseItemList",
  "ResponseStreamEvent",
];

/** Keywords that judge nothing. Properties may have these names too. */
const prose = new Set(["description", "title", "example", "examples", "deprecated"]);

interface Description {
  readonly info: { readonly version: string };
  readonly components: { readonly schemas: Readonly<Record<string, unknown>> };
}

function withoutProse(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withoutProse);
  if (!isRecord(schema)) return schema;
  // An older OpenAPI's word, which JSON Schema doesn't know.
  const { nullable, ...judging } = schema;
  if (nullable === true) return { anyOf: [withoutProse(judging), { type: "null" }] };
  const kept = Object.entries(judging).filter(
    ([name]) => !prose.has(name) && !name.startsWith("x-"),
  );
  return Object.fromEntries(
    kept.map(([name, value]) => [
      name,
      name === "properties" ? ofEach(value) : withoutProse(value),
    ]),
  );
}

const ofEach = (properties: unknown): object =>
  Object.fromEntries(
    Object.entries(properties as object).map(([name, schema]) => [name, withoutProse(schema)]),
  );

/** Adds a schema and what it refers to. */
function collect(name: string, from: Description, kept: Map<string, unknown>): void {
  if (kept.has(name)) return;
  const schema = from.components.schemas[name];
  if (schema === undefined) throw new Error(`The description has no schema ${name}.`);
  const trimmed = withoutProse(schema);
  kept.set(name, trimmed);
  for (const [, next] of JSON.stringify(trimmed).matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
    collect(next!, from, kept);
  }
}

const [source] = process.argv.slice(2);
if (source === undefined) throw new Error("Name the file of OpenAI's description, in JSON.");
const description = JSON.parse(await readFile(source, "utf8")) as Description;
const kept = new Map<string, unknown>();
for (const root of roots) collect(root, description, kept);

// A schema a line, so that another version's differences can be read.
const lines = [...kept]
  .sort(([one], [other]) => (one < other ? -1 : 1))
  .map(([name, schema]) => `${JSON.stringify(name)}: ${JSON.stringify(schema)}`);
const origin = `OpenAI's OpenAPI description ${description.info.version}, github.com/openai/openai-openapi (MIT)`;
const target = join(import.meta.dirname, "../fixtures/openapi/schemas.json");
await writeFile(
  target,
  `{"origin": ${JSON.stringify(origin)},\n"components": {"schemas": {\n${lines.join(",\n")}\n}}}\n`,
);
console.log(`${kept.size} schemas in ${target}`);
