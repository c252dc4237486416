import { z } from "zod";
import type { ChatMessage, ChatRequest, PromptRequest } from "../engine.ts";
import { InputError } from "../errors.ts";
import { messagesMax } from "../limits.ts";
import type { JsonObject } from "./body.ts";
import { count, list, parseFields, text } from "./fields.ts";
import { type Form, theForm } from "./grammar-fields.ts";
import { givenObject, kindError } from "./messages-fields.ts";
import { historyField, systemField } from "./messages-history.ts";
import { toolChoiceField, toolsField } from "./messages-tools.ts";
import { refuseOtherNames } from "./messages-unsupported.ts";
import { type Delivery, effort, replyShape, toDelivery, toReplyRequest } from "./reply-fields.ts";
import { type ChosenTools, chooseTools } from "./tool-choice.ts";
import { refuseUnsupported } from "./unsupported.ts";

const display = z.enum(["summarized", "omitted"], { error: '"summarized" or "omitted"' }).nullish();
const thinking = z.discriminatedUnion(
  "type",
  [
    z.object({ type: z.literal("disabled") }),
    z.object({ type: z.literal("enabled"), budget_tokens: count, display }),
    z.object({ type: z.literal("adaptive"), display }),
  ],
  { error: kindError("an object", "disabled", "enabled", "adaptive") },
);

const format = z.object(
  { type: z.literal("json_schema", { error: '"json_schema"' }), schema: givenObject },
  { error: 'an object of type "json_schema"' },
);
const outputConfig = z.object(
  { effort: effort.nullish(), format: format.nullish() },
  { error: "an object" },
);

/** Nothing is taken out of a conversation here, so that is all that may be asked for. */
const keptThinking = z.object(
  {
    type: z.literal("clear_thinking_20251015", { error: '"clear_thinking_20251015"' }),
    keep: z.union([z.literal("all"), z.object({ type: z.literal("all") })], { error: '"all"' }),
  },
  { error: "an object" },
);
const contextManagement = z.object({ edits: list(keptThinking).nullish() }, { error: "an object" });

const isEmpty = (value: unknown) => Array.isArray(value) && value.length === 0;
const noServers = z.custom(isEmpty, { error: "empty, since the server connects to no other" });
const noContainer = z.null({ error: "null, since the server runs no code" }).optional();

const promptFields = z.object({
  system: systemField.nullish(),
  messages: historyField,
  tools: toolsField.nullish(),
  tool_choice: toolChoiceField.nullish(),
  thinking: thinking.nullish(),
  output_config: outputConfig.nullish(),
  // Where the form stood before there was an `output_config`.
  output_format: format.nullish(),
  context_management: contextManagement.nullish(),
  mcp_servers: noServers.nullish(),
  container: noContainer,
});
type PromptFields = z.infer<typeof promptFields>;

/** What Anthropic's API has, and what deltafold adds, of the fields that chats have too. */
const { temperature, top_p, top_k, stream, seed, draft, cache_prompt, priority } = replyShape;
const { min_p, repetition_penalty, presence_penalty, frequency_penalty, logit_bias } = replyShape;
const messageFields = promptFields.extend({
  max_tokens: count,
  stop_sequences: list(text).nullish(),
  ...{ temperature, top_p, top_k, stream, seed, draft, cache_prompt, priority },
  ...{ min_p, repetition_penalty, presence_penalty, frequency_penalty, logit_bias },
});

/** A body of /v1/messages. */
export interface ParsedMessages {
  /** All but the form, which is the engine's to make. */
  readonly request: ChatRequest;
  readonly delivery: Delivery;
  readonly form: Form | null;
  /** Whether the reply's thinking is to be sent. */
  readonly showsThinking: boolean;
}

/** @throws InputError naming the field at fault */
export function parseMessages(body: JsonObject): ParsedMessages {
  const fields = parseFields(messageFields, body);
  refuseOtherNames(body);
  refuseUnsupported(body);
  const chosen = chosenTools(fields);
  const { messages, thinking: asked } = fields;
  if (messages.at(-1)?.at(-1)?.role === "assistant") {
    const message = "messages must end with a user's: a reply that is begun can't be gone on with.";
    throw new InputError(message, "messages", "unsupported_value");
  }
  const request = {
    ...toReplyRequest({ ...fields, stop: fields.stop_sequences }),
    ...promptOf(fields, chosen),
    parallelToolCalls: fields.tool_choice?.parallel ?? true,
    thinkingBudget: asked?.type === "enabled" ? asked.budget_tokens : null,
  };
  const showsThinking = asked?.type === "disabled" || asked?.display !== "omitted";
  return { request, delivery: toDelivery(fields), form: formOf(fields, chosen), showsThinking };
}

/**
 * The prompt of a body of /v1/messages/count_tokens, which may be a body of /v1/messages.
 * @throws InputError naming the field at fault
 */
export function parsePrompt(body: JsonObject): PromptRequest {
  const fields = parseFields(promptFields, body);
  return promptOf(fields, chosenTools(fields));
}

function promptOf(fields: PromptFields, { tools }: ChosenTools): PromptRequest {
  const { thinking: asked, output_config: config } = fields;
  return {
    messages: [...(fields.system ?? []), ...historyOf(fields)],
    tools,
    templateKwargs: asked ? { enable_thinking: asked.type !== "disabled" } : {},
    reasoningEffort: config?.effort ?? null,
  };
}

function historyOf({ messages }: PromptFields): ChatMessage[] {
  const history = messages.flat();
  if (history.length > messagesMax) {
    const message = `At most ${messagesMax} messages and tool results are read.`;
    throw new InputError(message, "messages", "too_many");
  }
  if (history.length === 0) throw new InputError("messages must not be empty.", "messages");
  return history;
}

function chosenTools({ tools, tool_choice: asked }: PromptFields): ChosenTools {
  return chooseTools(asked?.choice, tools ?? [], asked?.parallel ?? true);
}

/** @throws InputError where two forms are asked for, of which one may be calls */
function formOf(fields: PromptFields, { form: calls }: ChosenTools): Form | null {
  const { output_config: config, output_format: older } = fields;
  const asked = config?.format ?? older ?? null;
  const param = config?.format ? "output_config.format" : "output_format";
  if (config?.format && older) {
    const message = "output_format can't be together with output_config.format.";
    throw new InputError(message, "output_format");
  }
  return theForm(calls, asked && { spec: { kind: "jsonSchema", schema: asked.schema }, param });
}
