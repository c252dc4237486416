/** The fields of /v1/responses that chats don't have, or have in another place. */
import { z } from "zod";
import type { ReasoningEffort } from "../engine.ts";
import { InputError } from "../errors.ts";
import {
  metadataKeyCharsMax,
  metadataPairsMax,
  metadataValueCharsMax,
  topLogprobsMax,
} from "../limits.ts";
import type { JsonObject } from "./body.ts";
import { count, countTo, flag, list, mapping, parseFields, text, withoutNulls } from "./fields.ts";
import { effort } from "./reply-fields.ts";
import {
  type ResponseTool,
  type ResponseToolChoice,
  responseTool,
  responseToolChoice,
} from "./responses-tools.ts";
import { unsupported } from "./unsupported.ts";

const logprobsInclude = "message.output_text.logprobs";

const metadata = z
  .record(
    z.string(),
    z.string({ error: "a string" }).max(metadataValueCharsMax, {
      error: `a string of at most ${metadataValueCharsMax} characters`,
    }),
    { error: "an object" },
  )
  .refine((pairs) => Object.keys(pairs).length <= metadataPairsMax, {
    error: `at most ${metadataPairsMax} pairs`,
  })
  .refine((pairs) => Object.keys(pairs).every((key) => key.length <= metadataKeyCharsMax), {
    error: `pairs with keys of at most ${metadataKeyCharsMax} characters`,
  });

type Optional<T> = T | null | undefined;

/** What a text is to be, as responses say it. */
export type ResponseTextFormat =
  | { readonly type: "text" | "json_object" }
  | {
      readonly type: "json_schema";
      readonly name: string;
      readonly schema: Readonly<Record<string, unknown>>;
      readonly description?: Optional<string>;
      readonly strict?: Optional<boolean>;
    };

export interface ResponseFields {
  readonly instructions?: Optional<string>;
  readonly previous_response_id?: Optional<string>;
  readonly max_output_tokens?: Optional<number>;
  readonly metadata?: Optional<Readonly<Record<string, string>>>;
  readonly store?: Optional<boolean>;
  readonly parallel_tool_calls?: Optional<boolean>;
  readonly tools?: Optional<readonly ResponseTool[]>;
  readonly tool_choice?: Optional<ResponseToolChoice>;
  readonly reasoning?: Optional<{ readonly effort?: Optional<ReasoningEffort> }>;
  readonly text?: Optional<{
    readonly format?: Optional<ResponseTextFormat>;
    readonly verbosity?: Optional<string>;
  }>;
  readonly include?: Optional<readonly string[]>;
  readonly top_logprobs?: Optional<number>;
  readonly stream_options?: Optional<{ readonly include_obfuscation?: Optional<boolean> }>;
  readonly user?: Optional<string>;
  readonly safety_identifier?: Optional<string>;
  readonly prompt_cache_key?: Optional<string>;
  readonly service_tier?: Optional<string>;
}

const format = z.discriminatedUnion(
  "type",
  [
    z.object({ type: z.literal("text") }),
    z.object({ type: z.literal("json_object") }),
    z.object({
      type: z.literal("json_schema"),
      name: text,
      schema: mapping,
      description: text.nullish(),
      strict: flag.nullish(),
    }),
  ],
  { error: 'an object of type "text", "json_object" or "json_schema"' },
);

const responseFields: z.ZodType<ResponseFields> = z.object({
  instructions: text.nullish(),
  previous_response_id: text.nullish(),
  max_output_tokens: count.nullish(),
  metadata: metadata.nullish(),
  store: flag.nullish(),
  parallel_tool_calls: flag.nullish(),
  tools: list(responseTool).nullish(),
  tool_choice: responseToolChoice.nullish(),
  reasoning: z
    .object(
      {
        effort: effort.nullish(),
      },
      { error: "an object" },
    )
    .nullish(),
  text: z
    .object({ format: format.nullish(), verbosity: text.nullish() }, { error: "an object" })
    .nullish(),
  include: list(text).nullish(),
  top_logprobs: countTo(topLogprobsMax).nullish(),
  stream_options: z
    .object({ include_obfuscation: flag.nullish() }, { error: "an object" })
    .nullish(),
  user: text.nullish(),
  safety_identifier: text.nullish(),
  prompt_cache_key: text.nullish(),
  service_tier: text.nullish(),
});

/** @throws InputError naming the field at fault */
export function parseResponseFields(body: JsonObject): ResponseFields {
  const fields = parseFields(responseFields, body);
  refuseValues(fields);
  return fields;
}

function refuseValues({ include, top_logprobs, text: asked }: ResponseFields): void {
  const other = include?.findIndex((each) => each !== logprobsInclude) ?? -1;
  if (other >= 0) throw unsupported(`include[${other}]`, `may only be "${logprobsInclude}"`);
  if (top_logprobs && !include?.length) {
    const message = `top_logprobs needs include to have "${logprobsInclude}".`;
    throw new InputError(message, "top_logprobs");
  }
  const verbosity = asked?.verbosity ?? "medium";
  if (verbosity !== "medium") throw unsupported("text.verbosity", 'may only be "medium"');
}

/** What a response repeats of its request, but for what the engine may fill in. */
export function echoOf(fields: ResponseFields): object {
  const { tools, tool_choice, text: asked, user } = fields;
  return {
    background: false,
    instructions: fields.instructions ?? null,
    max_output_tokens: fields.max_output_tokens ?? null,
    max_tool_calls: null,
    metadata: fields.metadata ?? {},
    parallel_tool_calls: fields.parallel_tool_calls ?? true,
    previous_response_id: fields.previous_response_id ?? null,
    prompt_cache_key: fields.prompt_cache_key ?? null,
    reasoning: { effort: fields.reasoning?.effort ?? null, summary: null },
    safety_identifier: fields.safety_identifier ?? null,
    service_tier: "default",
    store: fields.store ?? true,
    text: { format: withoutNulls(asked?.format ?? { type: "text" }) },
    tool_choice: tool_choice ?? "auto",
    tools: (tools ?? []).map((tool) => ({ parameters: null, strict: null, ...tool })),
    top_logprobs: fields.top_logprobs ?? 0,
    truncation: "disabled",
    ...(typeof user === "string" && { user }),
  };
}
