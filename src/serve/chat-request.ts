import { z } from "zod";
import type { ChatMessage, ChatRequest, ToolSpec } from "../engine.ts";
import { InputError } from "../errors.ts";
import { messagesMax, topLogprobsMax } from "../limits.ts";
import type { JsonObject } from "./body.ts";
import {
  asGiven,
  countTo,
  flag,
  list,
  mapping,
  name,
  parseFields,
  rawList,
  text,
  wholeNumber,
  withoutNulls,
} from "./fields.ts";
import { eosEndsForms, type Form, parseForm, theForm } from "./grammar-fields.ts";
import { type Delivery, effort, replyShape, toDelivery, toReplyRequest } from "./reply-fields.ts";
import { chooseTools, toolChoice } from "./tool-choice.ts";
import { refuseUnsupported } from "./unsupported.ts";

type Content = NonNullable<ChatMessage["content"]>;
type ContentPart = Exclude<Content, string>[number];
type ToolCall = NonNullable<ChatMessage["tool_calls"]>[number];

/** Roles, parts and calls are checked where the template's messages are made. */
const message = z
  .object(
    {
      role: text,
      content: z
        .union([text, rawList<ContentPart>()], {
          error: "a string, a list of parts or null",
        })
        .nullish(),
      reasoning_content: text.nullish(),
      // The name that vLLM and Ollama give it.
      reasoning: text.nullish(),
      tool_calls: rawList<ToolCall>().nullish(),
      tool_call_id: text.nullish(),
      name: text.nullish(),
    },
    { error: "an object" },
  )
  .transform(toMessage);

/** Kept as given: templates print tools as they came, so the order of their keys is the prompt's. */
const tool = asGiven<ToolSpec>(
  z.object(
    {
      type: z.literal("function", { error: '"function"' }),
      function: z.object(
        {
          name,
          description: text.nullish(),
          parameters: mapping.nullish(),
        },
        { error: "an object with a name" },
      ),
    },
    { error: 'a tool of type "function"' },
  ),
);

const noBudget = -1;
const budgetError = { error: `a whole number of at least 0, or ${noBudget} for none` };
const budgetOrNone = z.int(budgetError).min(noBudget, budgetError);

const chatFields = z.object({
  ...replyShape,
  messages: list(message),
  tools: list(tool).nullish(),
  tool_choice: toolChoice.nullish(),
  parallel_tool_calls: flag.nullish(),
  chat_template_kwargs: mapping.nullish(),
  reasoning_effort: effort.nullish(),
  thinking_budget: wholeNumber.nullish(),
  // vLLM's name, and llama.cpp's two.
  thinking_token_budget: wholeNumber.nullish(),
  thinking_budget_tokens: budgetOrNone.nullish(),
  reasoning_budget_tokens: budgetOrNone.nullish(),
  logprobs: flag.nullish(),
  top_logprobs: countTo(topLogprobsMax).nullish(),
});

/** A body of /v1/chat/completions. */
export interface ParsedChat {
  /** All but the form, which is the engine's to make. */
  readonly request: ChatRequest;
  readonly delivery: Delivery;
  readonly form: Form | null;
}

/**
 * @param formParam what the request calls its `response_format`
 * @throws InputError naming the field at fault
 */
export function parseChat(body: JsonObject, formParam?: string): ParsedChat {
  const fields = parseFields(chatFields, body);
  refuseUnsupported(body);
  const { messages } = fields;
  if (messages.length > messagesMax) {
    throw new InputError(`At most ${messagesMax} messages are read.`, "messages", "too_many");
  }
  const parallelToolCalls = fields.parallel_tool_calls ?? true;
  const chosen = chooseTools(fields.tool_choice, fields.tools ?? [], parallelToolCalls);
  const tools = chosen.tools?.map((each) => ({ ...each, function: withoutNulls(each.function) }));
  const request = {
    ...toReplyRequest(fields),
    messages,
    tools: tools ?? null,
    templateKwargs: templateKwargs(fields.chat_template_kwargs ?? {}),
    parallelToolCalls,
    thinkingBudget: thinkingBudget(fields),
    reasoningEffort: fields.reasoning_effort ?? null,
    topLogprobs: topLogprobs(fields.logprobs ?? false, fields.top_logprobs ?? null),
  };
  const form = theForm(chosen.form, parseForm(body, formParam));
  if (form && request.ignoreEos) throw new InputError(eosEndsForms, "ignore_eos");
  return { request, delivery: toDelivery(fields), form };
}

function thinkingBudget(fields: z.infer<typeof chatFields>): number | null {
  const { thinking_budget: own, thinking_token_budget: theirs } = fields;
  const { thinking_budget_tokens: one, reasoning_budget_tokens: other } = fields;
  const budget = own ?? theirs ?? one ?? other ?? null;
  return budget === noBudget ? null : budget;
}

/** `thinking` is what some clients call enable_thinking. */
function templateKwargs(given: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { thinking } = given;
  const alias = typeof thinking === "boolean" ? { enable_thinking: thinking } : {};
  return { ...alias, ...withoutNulls(given) };
}

function topLogprobs(wanted: boolean, top: number | null): number | null {
  if (wanted) return top ?? 0;
  if (top === null || top === 0) return null;
  throw new InputError("top_logprobs needs logprobs to be true.", "top_logprobs");
}

interface MessageFields {
  readonly role: string;
  readonly content?: Content | null | undefined;
  readonly reasoning_content?: string | null | undefined;
  readonly reasoning?: string | null | undefined;
  readonly tool_calls?: readonly ToolCall[] | null | undefined;
  readonly tool_call_id?: string | null | undefined;
  readonly name?: string | null | undefined;
}

function toMessage(fields: MessageFields): ChatMessage {
  const { role, content, tool_calls, tool_call_id, name } = fields;
  return {
    role,
    content: content ?? null,
    reasoning_content: fields.reasoning_content ?? fields.reasoning ?? null,
    tool_calls: tool_calls ?? null,
    ...(typeof tool_call_id === "string" && { tool_call_id }),
    ...(typeof name === "string" && { name }),
  };
}
