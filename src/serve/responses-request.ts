import { DeltafoldError, InputError } from "../errors.ts";
import type { JsonObject } from "./body.ts";
import { type ParsedChat, parseChat } from "./chat-request.ts";
import {
  echoOf,
  parseResponseFields,
  type ResponseFields,
  type ResponseTextFormat,
} from "./responses-fields.ts";
import { isObjectText, parseInput } from "./responses-input.ts";
import { messagesOf, type ResponseItem } from "./responses-items.ts";
import { chatToolChoice, chatTools, refuseHostedTools } from "./responses-tools.ts";
import { refuseFields } from "./responses-unsupported.ts";

/** A body of /v1/responses, as the chat that it is. */
export interface ParsedResponse extends ParsedChat {
  /** The conversation to reply to, without the instructions. */
  readonly items: readonly ResponseItem[];
  /** Whether later requests may go on from the response. */
  readonly store: boolean;
  /** Fields that the response repeats. */
  readonly echo: object;
}

/**
 * @param conversation up to the end of an earlier response
 * @throws InputError naming the field at fault; what `conversation` throws
 */
export function parseResponse(
  body: JsonObject,
  conversation: (id: string) => readonly ResponseItem[],
): ParsedResponse {
  refuseFields(body);
  refuseHostedTools(body);
  const fields = parseResponseFields(body);
  const input = parseInput(body);
  const previousId = fields.previous_response_id ?? null;
  const items = [...(previousId === null ? [] : whole(conversation(previousId))), ...input];
  const chat = namingInput(() => parseChat(chatBody(body, fields, items), "text.format"));
  return { ...chat, items, store: fields.store ?? true, echo: echoOf(fields) };
}

/**
 * A step on the chat's way, whose errors name the messages: clients know what they made them of.
 * @throws DeltafoldError what `step` throws, naming `input`
 */
export function namingInput<T>(step: () => T): T {
  try {
    return step();
  } catch (error) {
    if (!(error instanceof DeltafoldError) || !error.param?.startsWith("messages")) throw error;
    const { code, message, status } = error;
    throw new DeltafoldError(code, message, { status, param: "input", cause: error });
  }
}

/** @throws InputError for a conversation that ends in half a call, which no prompt can have */
function whole(items: readonly ResponseItem[]): readonly ResponseItem[] {
  const cut = items.some((item) => {
    return item.type === "function_call" && !isObjectText(item.arguments);
  });
  if (!cut) return items;
  const message = "previous_response_id names a response that ended within a call.";
  throw new InputError(message, "previous_response_id");
}

/** Renames what chats call otherwise; the rest, deltafold's own fields included, is the same. */
function chatBody(
  body: JsonObject,
  fields: ResponseFields,
  items: readonly ResponseItem[],
): JsonObject {
  const { instructions = null } = fields;
  const system = instructions === null ? [] : [{ role: "system", content: instructions }];
  return {
    ...body,
    messages: [...system, ...messagesOf(items)],
    tools: chatTools(fields.tools ?? []),
    tool_choice: chatToolChoice(fields.tool_choice ?? "auto"),
    max_tokens: fields.max_output_tokens,
    reasoning_effort: fields.reasoning?.effort,
    response_format: responseFormat(fields.text?.format ?? { type: "text" }),
    logprobs: (fields.include?.length ?? 0) > 0,
  };
}

function responseFormat(asked: ResponseTextFormat): object {
  if (asked.type !== "json_schema") return asked;
  const { name, schema } = asked;
  return { type: "json_schema", json_schema: { name, schema } };
}
