import type { Hono } from "hono";
import { expect } from "vitest";
import { post } from "./http.cases.ts";

export const messagesPath = "/v1/messages";
export const countPath = "/v1/messages/count_tokens";

/** Offered in Anthropic's shape. */
export const weather = {
  name: "get_weather",
  description: "The weather of a city",
  input_schema: {
    type: "object",
    properties: { city: { type: "string" }, days: { type: "integer" } },
    required: ["city"],
  },
} as const;

/** A block of a message, as far as tests look at it. */
export interface Block {
  readonly type: string;
  readonly text?: string;
  readonly thinking?: string;
  readonly signature?: string;
  readonly id?: string;
  readonly name?: string;
  readonly input?: unknown;
}

export interface Message {
  readonly id: string;
  readonly content: readonly Block[];
  readonly stop_reason: string | null;
  readonly stop_sequence: string | null;
  readonly usage: {
    readonly input_tokens: number;
    readonly cache_read_input_tokens: number;
    readonly output_tokens: number;
  };
  readonly token_sha: string;
}

export interface MessageEvent {
  readonly type: string;
  readonly index?: number;
  readonly message?: Message;
  readonly content_block?: Block;
  readonly delta?: {
    readonly type: string;
    readonly text?: string;
    readonly thinking?: string;
    readonly signature?: string;
    readonly partial_json?: string;
    readonly stop_reason?: string;
    readonly stop_sequence?: string | null;
  };
  readonly usage?: Message["usage"];
  readonly token_sha?: string;
  readonly error?: { readonly type: string; readonly message: string };
}

/** Posts what must be answered. */
export async function answerTo<T>(app: Hono, path: string, body: object): Promise<T> {
  const response = await post(app, path, body);
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${response.status}: ${text}`);
  return JSON.parse(text) as T;
}

export async function messageOf(app: Hono, body: object): Promise<Message> {
  return await answerTo<Message>(app, messagesPath, { max_tokens: 500, ...body });
}

/** The events of a streamed message, each of which must be named as its type says. */
export async function messageEvents(app: Hono, body: object): Promise<MessageEvent[]> {
  const response = await post(app, messagesPath, { max_tokens: 500, ...body, stream: true });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${response.status}: ${text}`);
  const frames = text.split("\n\n");
  expect(frames.pop()).toBe("");
  return frames.map((frame) => {
    const [, name, data] = /^event: (\w+)\ndata: (.*)$/.exec(frame)!;
    const event = JSON.parse(data!) as MessageEvent;
    expect(event.type).toBe(name);
    return event;
  });
}

/**
 * What the events of a message add up to, as a whole one has it. Checks their order: one start and one
 * stop of each block, indices that count up, deltas of the block's own kind.
 */
export function joinedMessage(events: readonly MessageEvent[]): Omit<Message, "id"> {
  const [start, ...rest] = events;
  expect(start!.type).toBe("message_start");
  expect(rest.pop()).toEqual({ type: "message_stop" });
  const last = rest.pop()!;
  expect(last.type).toBe("message_delta");
  const content: Block[] = [];
  let open: { block: Block; json: string } | null = null;
  for (const event of rest) {
    if (event.type === "content_block_start") {
      expect(open).toBeNull();
      expect(event.index).toBe(content.length);
      open = { block: event.content_block!, json: "" };
      continue;
    }
    expect(event.index).toBe(content.length);
    if (event.type === "content_block_delta") open = withDelta(open!, event.delta!);
    else {
      expect(event.type).toBe("content_block_stop");
      content.push(closed(open!));
      open = null;
    }
  }
  expect(open).toBeNull();
  const { stop_reason, stop_sequence } = last.delta!;
  return {
    content,
    stop_reason: stop_reason!,
    stop_sequence: stop_sequence!,
    usage: last.usage!,
    token_sha: last.token_sha!,
  };
}

type Open = { block: Block; json: string };

function withDelta({ block, json }: Open, delta: NonNullable<MessageEvent["delta"]>): Open {
  if (delta.type === "input_json_delta") {
    expect(block.type).toBe("tool_use");
    return { block, json: json + delta.partial_json };
  }
  if (delta.type === "text_delta") {
    expect(block.type).toBe("text");
    return { block: { ...block, text: block.text! + delta.text }, json };
  }
  expect(block.type).toBe("thinking");
  if (delta.type === "signature_delta") return { block, json };
  expect(delta.type).toBe("thinking_delta");
  return { block: { ...block, thinking: block.thinking! + delta.thinking }, json };
}

/** A call that was cut keeps its pieces as they are. */
function closed({ block, json }: Open): Block {
  if (block.type !== "tool_use") return block;
  expect(block.input).toEqual({});
  try {
    return { ...block, input: JSON.parse(json) as unknown };
  } catch {
    return { ...block, input: json };
  }
}
