/** Judges replies by OpenAI's own description of them. */
import { readFile } from "node:fs/promises";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";

/** As `scripts/trim-openapi.ts` makes it. */
interface Description {
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

interface Schema {
  readonly anyOf?: readonly Schema[];
  readonly $ref?: string;
  readonly properties?: Record<string, Schema>;
  readonly items?: Schema;
  readonly enum?: readonly unknown[];
}

const file = new URL("../../fixtures/openapi/schemas.json", import.meta.url);
const description = JSON.parse(await readFile(file, "utf8")) as Description;
const { schemas } = description.components;
allowWhatIsSent();

// Strict would refuse the keywords that OpenAPI adds; formats are prose there.
const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true });
ajv.addSchema(description, "openai");
const compiled = new Map<string, ValidateFunction>();

/**
 * OpenAI's description of completions knows only whole ones, without a prompt's logprobs: a chunk before
 * the last has no finish reason, and nothing says how likely a prompt's first token was.
 */
function allowWhatIsSent(): void {
  const choice = schemas["CreateCompletionResponse"]!.properties!["choices"]!.items!.properties!;
  const logprobs = choice["logprobs"]!.anyOf![0]!.properties!;
  for (const [of, name] of [
    [choice, "finish_reason"],
    [logprobs["token_logprobs"], "items"],
    [logprobs["top_logprobs"], "items"],
  ] as [Record<string, Schema>, string][]) {
    of[name] = { anyOf: [of[name]!, { enum: [null] }] };
  }
}

function validator(name: string): ValidateFunction {
  const known = compiled.get(name) ?? ajv.compile({ $ref: `openai#/components/schemas/${name}` });
  compiled.set(name, known);
  return known;
}

/** @throws Error unless `value` is what the description's schema of that name says. */
export function expectValid(name: string, value: unknown): void {
  const validate = validator(name);
  if (validate(value)) return;
  const lines = validate.errors!.map(
    ({ instancePath, message, schemaPath }) => `${instancePath} ${message} (${schemaPath})`,
  );
  throw new Error(`no ${name}: ${JSON.stringify(value)}\n${lines.join("\n")}`);
}

/** The same of the schema for an event's type: what is wrong is told better than by the union of all. */
export function expectValidEvent(event: { readonly type: string }): void {
  const names = schemas["ResponseStreamEvent"]!.anyOf!.map(({ $ref }) => $ref!.split("/").at(-1)!);
  const name = names.find((each) => schemas[each]!.properties!["type"]!.enum!.includes(event.type));
  if (name === undefined) throw new Error(`no event of OpenAI's: ${event.type}`);
  expectValid(name, event);
}
