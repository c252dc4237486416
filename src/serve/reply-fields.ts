/** The request fields that chats and completions share. */
import { z } from "zod";
import { type ReasoningEffort, type ReplyRequest, reasoningEfforts } from "../engine.ts";
import { count, flag, list, text } from "./fields.ts";

export const effort: z.ZodType<ReasoningEffort> = z.enum(reasoningEfforts, {
  error: `one of ${reasoningEfforts.join(", ")}`,
});
const stop = z.union([text, list(text)], { error: "a string or a list of strings" });
const priority = z.enum(["foreground", "background"], { error: '"foreground" or "background"' });
const streamOptions = z.object({ include_usage: flag.nullish() }, { error: "an object" });

/** The sampling fields are as they came: the engine checks them. Null is as good as absent. */
export interface ReplyFields {
  readonly temperature?: unknown;
  readonly top_p?: unknown;
  readonly top_k?: unknown;
  readonly min_p?: unknown;
  readonly repetition_penalty?: unknown;
  readonly presence_penalty?: unknown;
  readonly frequency_penalty?: unknown;
  readonly logit_bias?: unknown;
  readonly seed?: unknown;
  readonly max_tokens?: number | null | undefined;
  readonly max_completion_tokens?: number | null | undefined;
  /** llama.cpp's name. */
  readonly n_predict?: number | null | undefined;
  readonly stop?: string | readonly string[] | null | undefined;
  readonly ignore_eos?: boolean | null | undefined;
  readonly stream?: boolean | null | undefined;
  readonly stream_options?:
    | { readonly include_usage?: boolean | null | undefined }
    | null
    | undefined;
  /** Whether drafts may be used, which changes no token. */
  readonly draft?: boolean | null | undefined;
  /** llama.cpp's name: whether the prompt cache may be used, which changes no token either. */
  readonly cache_prompt?: boolean | null | undefined;
  readonly priority?: ReplyRequest["priority"] | null | undefined;
  readonly n?: number | null | undefined;
}

export const replyShape: {
  readonly [Field in keyof ReplyFields]-?: z.ZodType<ReplyFields[Field]>;
} = {
  temperature: z.unknown().optional(),
  top_p: z.unknown().optional(),
  top_k: z.unknown().optional(),
  min_p: z.unknown().optional(),
  repetition_penalty: z.unknown().optional(),
  presence_penalty: z.unknown().optional(),
  frequency_penalty: z.unknown().optional(),
  logit_bias: z.unknown().optional(),
  seed: z.unknown().optional(),
  max_tokens: count.nullish(),
  max_completion_tokens: count.nullish(),
  n_predict: count.nullish(),
  stop: stop.nullish(),
  ignore_eos: flag.nullish(),
  stream: flag.nullish(),
  stream_options: streamOptions.nullish(),
  draft: flag.nullish(),
  cache_prompt: flag.nullish(),
  priority: priority.nullish(),
  n: count.nullish(),
};

/** How a reply is to be sent. */
export interface Delivery {
  readonly streamed: boolean;
  /** Whether a stream ends with its usage. */
  readonly includeUsage: boolean;
  /** How many replies there are. */
  readonly choices: number;
}

export function toDelivery(fields: ReplyFields): Delivery {
  return {
    streamed: fields.stream ?? false,
    includeUsage: fields.stream_options?.include_usage ?? false,
    choices: fields.n ?? 1,
  };
}

export function toReplyRequest(fields: ReplyFields): ReplyRequest {
  const { stop: stops } = fields;
  return {
    temperature: fields.temperature,
    top_p: fields.top_p,
    top_k: fields.top_k,
    min_p: fields.min_p,
    repetition_penalty: fields.repetition_penalty,
    presence_penalty: fields.presence_penalty,
    frequency_penalty: fields.frequency_penalty,
    logit_bias: fields.logit_bias,
    seed: fields.seed,
    maxTokens: fields.max_completion_tokens ?? fields.max_tokens ?? fields.n_predict ?? null,
    stop: typeof stops === "string" ? [stops] : (stops ?? []),
    ignoreEos: fields.ignore_eos ?? false,
    draft: fields.draft ?? true,
    cachePrompt: fields.cache_prompt ?? true,
    priority: fields.priority ?? "foreground",
  };
}
