/** The items of /v1/responses: what a conversation consists of, and the messages that they make. */
import type { ChatMessage } from "../engine.ts";

export type ItemStatus = "in_progress" | "completed" | "incomplete";

export type ResponseItem = MessageItem | ReasoningItem | CallItem | CallOutputItem;

export interface MessageItem {
  readonly type: "message";
  readonly id: string;
  readonly status: ItemStatus;
  readonly role: "user" | "assistant" | "system" | "developer";
  readonly content: readonly MessagePart[];
}

export type MessagePart =
  | { readonly type: "input_text"; readonly text: string }
  | {
      readonly type: "output_text";
      readonly text: string;
      readonly annotations: readonly [];
      readonly logprobs: readonly object[];
    };

export interface ReasoningItem {
  readonly type: "reasoning";
  readonly id: string;
  readonly status: ItemStatus;
  readonly summary: readonly [];
  readonly content: readonly { readonly type: "reasoning_text"; readonly text: string }[];
}

export interface CallItem {
  readonly type: "function_call";
  readonly id: string;
  readonly status: ItemStatus;
  readonly call_id: string;
  readonly name: string;
  /** The text of a JSON object; a part of one where the reply ended within the call. */
  readonly arguments: string;
}

export interface CallOutputItem {
  readonly type: "function_call_output";
  readonly id: string;
  readonly status: ItemStatus;
  readonly call_id: string;
  readonly output: string;
}

/** A message of the assistant that further items may add to. */
interface Turn {
  readonly role: "assistant";
  content: string | null;
  reasoning_content: string | null;
  tool_calls: NonNullable<ChatMessage["tool_calls"]>[number][] | null;
}

/**
 * The messages of a conversation, as a client of chats would send them: reasoning, text and calls
 * of one reply are one message.
 */
export function messagesOf(items: readonly ResponseItem[]): ChatMessage[] {
  const messages: ChatMessage[] = [];
  let turn: Turn | null = null;
  for (const [index, item] of items.entries()) {
    if (item.type === "function_call_output") {
      turn = null;
      messages.push({ role: "tool", tool_call_id: item.call_id, content: item.output });
    } else if (item.type === "message" && item.role !== "assistant") {
      turn = null;
      messages.push({ role: item.role, content: textOf(item.content) });
    } else if (item.type !== "reasoning" || textOf(item.content) !== "") {
      if (turn === null || beginsTurn(item, turn, items[index - 1]!)) {
        turn = { role: "assistant", content: null, reasoning_content: null, tool_calls: null };
        messages.push(turn);
      }
      addTo(turn, item);
    }
  }
  return messages;
}

/** A reply begins with its reasoning, and goes on behind a call; otherwise its text is one item. */
function beginsTurn(
  item: Exclude<ResponseItem, CallOutputItem>,
  { content, tool_calls }: Turn,
  before: ResponseItem,
): boolean {
  if (item.type === "reasoning") return content !== null || tool_calls !== null;
  return item.type === "message" && content !== null && before.type !== "function_call";
}

function addTo(turn: Turn, item: Exclude<ResponseItem, CallOutputItem>): void {
  if (item.type === "message") turn.content = (turn.content ?? "") + textOf(item.content);
  else if (item.type === "reasoning") {
    turn.reasoning_content = (turn.reasoning_content ?? "") + textOf(item.content);
  } else {
    const { call_id, name, arguments: written } = item;
    turn.tool_calls ??= [];
    turn.tool_calls.push({
      id: call_id,
      type: "function",
      function: { name, arguments: written },
    });
  }
}

function textOf(parts: readonly { readonly text: string }[]): string {
  return parts.map(({ text }) => text).join("");
}
