import { z } from "zod";
import type { ChatMessage, ChatRequest, ToolSpec } from "../engine.ts";
import { InputError } from "../errors.ts";
import { messagesMax } from "../limits.ts";
import type { JsonObject } from "./body.ts";
import { asGiven, list, mapping, parseFields, rawList, text, withoutNulls } from "./fields.ts";
import { type Delivery, replyShape, toDelivery, toReplyRequest } from "./reply-fields.ts";
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
          name: z.string({ error: "a name" }).min(1, { error: "a name" }),
          description: text.nullish(),
          parameters: mapping.nullish(),
        },
        { error: "an object with a name" },
      ),
    },
    { error: 'a tool of type "function"' },
  ),
);

const chatFields = z.object({
  ...replyShape,
  messages: list(message),
  tools: list(tool).nullish(),
  tool_choice: z.unknown().optional(),
  chat_template_kwargs: mapping.nullish(),
});

/**
 * A body of /v1/chat/completions.
 * @throws InputError naming the field at fault
 */
export function parseChat(body: JsonObject): { request: ChatRequest; delivery: Delivery } {
  const fields = parseFields(chatFields, body);
  refuseUnsupported(body);
  const { messages, tools, tool_choice: choice, chat_template_kwargs: kwargs } = fields;
  if (messages.length > messagesMax) {
    throw new InputError(`At most ${messagesMax} messages are read.`, "messages", "too_many");
  }
  const offered = choice === "none" ? null : (tools ?? null);
  const request = {
    ...toReplyRequest(fields),
    messages,
    tools: offered?.map((each) => ({ ...each, function: withoutNulls(each.function) })) ?? null,
    templateKwargs: withoutNulls(kwargs ?? {}),
  };
  return { request, delivery: toDelivery(fields) };
}

interface MessageFields {
  readonly role: string;
  readonly content?: Content | null | undefined;
  readonly reasoning_content?: string | null | undefined;
  readonly tool_calls?: readonly ToolCall[] | null | undefined;
  readonly tool_call_id?: string | null | undefined;
  readonly name?: string | null | undefined;
}

function toMessage(fields: MessageFields): ChatMessage {
  const { role, content, reasoning_content, tool_calls, tool_call_id, name } = fields;
  return {
    role,
    content: content ?? null,
    reasoning_content: reasoning_content ?? null,
    tool_calls: tool_calls ?? null,
    ...(typeof tool_call_id === "string" && { tool_call_id }),
    ...(typeof name === "string" && { name }),
  };
}
