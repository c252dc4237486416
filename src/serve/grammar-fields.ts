/** The request fields that hold a reply to a form: OpenAI's, vLLM's old and new, and llama.cpp's. */
import { z } from "zod";
import type { GrammarSpec } from "../engine.ts";
import { InputError } from "../errors.ts";
import { isRecord } from "../json.ts";
import type { JsonObject } from "./body.ts";
import { flag, list, mapping, parseFields, text } from "./fields.ts";

/**
 * The one form of a reply that may have to be tool calls.
 * @throws InputError where another is asked for beside these
 */
export function theForm(calls: GrammarSpec | null, asked: GrammarSpec | null): GrammarSpec | null {
  if (!calls || !asked) return calls ?? asked;
  const message = "A reply that has to be tool calls can't have another form.";
  throw new InputError(message, "tool_choice");
}

/** Why no reply with a form goes on past eos. */
export const eosEndsForms = "ignore_eos can't be true where a reply has a form, which eos ends.";

/** A schema, or its text. */
const schema = z.union([mapping, flag, text], { error: "a JSON schema or its text" });

const responseFormat = z.discriminatedUnion(
  "type",
  [
    z.object({ type: z.literal("text") }),
    z.object({ type: z.literal("json_object") }),
    z.object({
      type: z.literal("json_schema"),
      json_schema: z.object(
        { name: text.nullish(), schema: z.union([mapping, flag], { error: "a JSON schema" }) },
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

const grammarFields = z.object({
  response_format: responseFormat.nullish(),
  structured_outputs: structuredOutputs.nullish(),
  guided_json: schema.nullish(),
  guided_regex: text.nullish(),
  guided_choice: list(text).nullish(),
  guided_grammar: text.nullish(),
  grammar: text.nullish(),
});

/**
 * The form that a body asks for; null where it asks for none.
 * @throws InputError naming the field at fault, or the second where two ask for one
 */
export function parseGrammar(body: JsonObject): GrammarSpec | null {
  const fields = parseFields(grammarFields, body);
  const structured = fields.structured_outputs ?? {};
  const asked: [name: string, spec: GrammarSpec | null][] = [
    ["response_format", ofResponseFormat(fields.response_format)],
    ["structured_outputs.json", ofSchema(structured.json, "structured_outputs.json")],
    ["structured_outputs.regex", ofText("regex", structured.regex)],
    ["structured_outputs.choice", ofChoices(structured.choice)],
    ["structured_outputs.grammar", ofText("ebnf", structured.grammar)],
    ["structured_outputs.json_object", structured.json_object ? { kind: "jsonObject" } : null],
    ["guided_json", ofSchema(fields.guided_json, "guided_json")],
    ["guided_regex", ofText("regex", fields.guided_regex)],
    ["guided_choice", ofChoices(fields.guided_choice)],
    ["guided_grammar", ofText("ebnf", fields.guided_grammar)],
    ["grammar", ofText("ebnf", fields.grammar)],
  ];
  const [first, second] = asked.filter(([, spec]) => spec !== null);
  if (second) {
    const message = `${second[0]} can't be together with ${first![0]}: a reply has one form.`;
    throw new InputError(message, second[0]);
  }
  return first?.[1] ?? null;
}

type ResponseFormat = z.infer<typeof responseFormat>;

function ofResponseFormat(format: ResponseFormat | null | undefined): GrammarSpec | null {
  if (format?.type === "json_object") return { kind: "jsonObject" };
  if (format?.type !== "json_schema") return null;
  return { kind: "jsonSchema", schema: format.json_schema.schema };
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
