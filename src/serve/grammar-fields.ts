/** The request fields that hold a reply to a form: OpenAI's, vLLM's old and new, and llama.cpp's. */
import { z } from "zod";
import type { GrammarSpec } from "../engine.ts";
import { InputError } from "../errors.ts";
import { isRecord } from "../json.ts";
import type { JsonObject } from "./body.ts";
import { flag, list, mapping, parseFields, text } from "./fields.ts";
import { refuseValues, type Unsupported } from "./unsupported.ts";

/** What a reply is held to. */
export interface Form {
  readonly spec: GrammarSpec;
  /** The request's field that asks for it. */
  readonly param: string;
}

/**
 * The one form of a reply that may have to be tool calls.
 * @throws InputError where another is asked for beside these
 */
export function theForm(calls: Form | null, asked: Form | null): Form | null {
  if (!calls || !asked) return calls ?? asked;
  const message = "A reply that has to be tool calls can't have another form.";
  throw new InputError(message, calls.param);
}

/** Why no reply with a form goes on past eos. */
export const eosEndsForms = "ignore_eos can't be true where a reply has a form, which eos ends.";

const anySchema = z.union([mapping, flag], { error: "a JSON schema" });
/** A schema, or its text. */
const schema = z.union([mapping, flag, text], { error: "a JSON schema or its text" });

const responseFormat = z.discriminatedUnion(
  "type",
  [
    z.object({ type: z.literal("text") }),
    // llama.cpp's way to name a schema.
    z.object({ type: z.literal("json_object"), schema: anySchema.nullish() }),
    z.object({
      type: z.literal("json_schema"),
      json_schema: z.object(
        { name: text.nullish(), schema: anySchema },
        { error: "an object with a schema" },
      ),
    }),
  ],
  { error: 'an object of type "text", "json_object" or "json_schema"' },
);

const structuredOutputs = z.object(
  {
    json: schema.nullish(),
    regex: text.nullish(),
    choice: list(text).nullish(),
    grammar: text.nullish(),
    json_object: flag.nullish(),
  },
  { error: "an object" },
);

/** Of `structured_outputs`. */
const unsupportedOutputs: Unsupported = new Map<string, readonly unknown[]>([
  ["structural_tag", []],
  ["whitespace_pattern", []],
  ["disable_any_whitespace", [false]],
  ["disable_additional_properties", [false]],
]);

const formFields = z.object({
  response_format: responseFormat.nullish(),
  structured_outputs: structuredOutputs.nullish(),
  json_schema: schema.nullish(),
  guided_json: schema.nullish(),
  guided_regex: text.nullish(),
  guided_choice: list(text).nullish(),
  guided_grammar: text.nullish(),
  grammar: text.nullish(),
});

/**
 * The form that a body asks for; null where it asks for none.
 * @param openaiParam what the request calls OpenAI's `response_format`
 * @throws InputError naming the field at fault, or the second where two ask for one
 */
export function parseForm(body: JsonObject, openaiParam = "response_format"): Form | null {
  const fields = parseFields(formFields, body);
  const structured = fields.structured_outputs ?? {};
  const { structured_outputs: given } = body;
  if (isRecord(given)) refuseValues(given, unsupportedOutputs, "structured_outputs.");
  const specs: [param: string, spec: GrammarSpec | null][] = [
    [openaiParam, ofResponseFormat(fields.response_format)],
    ["structured_outputs.json", ofSchema(structured.json, "structured_outputs.json")],
    ["structured_outputs.regex", ofText("regex", structured.regex)],
    ["structured_outputs.choice", ofChoices(structured.choice)],
    ["structured_outputs.grammar", ofText("ebnf", structured.grammar)],
    ["structured_outputs.json_object", structured.json_object ? { kind: "jsonObject" } : null],
    ["json_schema", ofSchema(fields.json_schema, "json_schema")],
    ["guided_json", ofSchema(fields.guided_json, "guided_json")],
    ["guided_regex", ofText("regex", fields.guided_regex)],
    ["guided_choice", ofChoices(fields.guided_choice)],
    ["guided_grammar", ofText("ebnf", fields.guided_grammar)],
    ["grammar", ofText("ebnf", fields.grammar)],
  ];
  const asked = specs.flatMap(([param, spec]) => (spec ? [{ param, spec }] : []));
  const [first = null, second] = asked;
  if (!second) return first;
  const message = `${second.param} can't be together with ${first!.param}: a reply has one form.`;
  throw new InputError(message, second.param);
}

type ResponseFormat = z.infer<typeof responseFormat>;

function ofResponseFormat(format: ResponseFormat | null | undefined): GrammarSpec | null {
  if (!format || format.type === "text") return null;
  const { schema = null } = format.type === "json_schema" ? format.json_schema : format;
  return schema === null ? { kind: "jsonObject" } : { kind: "jsonSchema", schema };
}

function ofSchema(
  given: Record<string, unknown> | boolean | string | null | undefined,
  name: string,
): GrammarSpec | null {
  if (given === null || given === undefined) return null;
  const value = typeof given === "string" ? parsed(given, name) : given;
  if (isRecord(value) || typeof value === "boolean") return { kind: "jsonSchema", schema: value };
  throw new InputError(`${name} must be a JSON schema or its text.`, name, "invalid_type");
}

function parsed(written: string, name: string): unknown {
  try {
    return JSON.parse(written);
  } catch {
    throw new InputError(`${name} is not valid JSON.`, name, "invalid_json");
  }
}

/** Empty texts are what clients send for none. */
function ofText(kind: "regex" | "ebnf", written: string | null | undefined): GrammarSpec | null {
  if (!written) return null;
  return kind === "regex" ? { kind, pattern: written } : { kind, grammar: written };
}

const ofChoices = (choices: readonly string[] | null | undefined): GrammarSpec | null =>
  choices && choices.length > 0 ? { kind: "choice", choices } : null;
