import type { Hono } from "hono";
import { expect } from "vitest";

/** The parts of a reply that tests look at. */
export interface Choice {
  readonly index: number;
  readonly text?: string;
  readonly message?: Delta;
  readonly delta?: Delta;
  readonly finish_reason: string | null;
  readonly logprobs?: Logprobs | null;
  readonly token_sha?: string;
}

interface ChatToken {
  readonly token: string;
  readonly logprob: number;
  readonly bytes: readonly number[];
  readonly top_logprobs?: readonly ChatToken[];
}

/** A chat's, or a completion's. */
interface Logprobs {
  readonly content?: readonly ChatToken[];
  readonly tokens?: readonly string[];
  readonly token_logprobs?: readonly (number | null)[];
  readonly top_logprobs?: readonly (Readonly<Record<string, number>> | null)[];
  readonly text_offset?: readonly number[];
}

export interface Delta {
  readonly role?: string;
  readonly content?: string | null;
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly ToolCallDelta[];
}

interface ToolCallDelta {
  readonly index?: number;
  readonly id?: string;
  readonly type?: string;
  readonly function: { readonly name?: string; readonly arguments: string };
}

export interface ReplyObject {
  readonly id: string;
  readonly object: string;
  readonly created: number;
  readonly model: string;
  readonly choices: readonly Choice[];
  readonly usage?: {
    readonly prompt_tokens: number;
    readonly completion_tokens: number;
    readonly prompt_tokens_details: { readonly cached_tokens: number };
    readonly completion_tokens_details: { readonly reasoning_tokens: number };
  };
  readonly timings?: { readonly cache_miss_reason?: string };
  readonly speculative?: { readonly rounds: number; readonly drafted: number };
  readonly token_sha?: string;
  readonly stop_sequence?: string | null;
  readonly error?: ErrorObject;
}

export interface ErrorObject {
  readonly message: string;
  readonly type: string;
  readonly param: string | null;
  readonly code: string;
}

export const chatPath = "/v1/chat/completions";
export const textPath = "/v1/completions";
export const hello: readonly object[] = [{ role: "user", content: "Hello" }];

/** What a model writes to call the tool get_weather. */
export const weatherCall = (city: string): string =>
  `<tool_call>\n<function=get_weather>\n<parameter=city>\n${city}\n</parameter>\n` +
  "</function>\n</tool_call>";

export async function post(
  app: Hono,
  path: string,
  body: object | string,
  init: RequestInit = {},
): Promise<Response> {
  return await app.request(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: typeof body === "string" ? body : JSON.stringify(body),
    ...init,
  });
}

export async function replyTo(app: Hono, path: string, body: object): Promise<ReplyObject> {
  const response = await post(app, path, body);
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${response.status}: ${text}`);
  return JSON.parse(text) as ReplyObject;
}

/** The events of a streamed reply; the last must be [DONE]. */
export async function eventsOf(app: Hono, path: string, body: object): Promise<ReplyObject[]> {
  const response = await post(app, path, { ...body, stream: true });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${response.status}: ${text}`);
  const frames = text.split("\n\n").filter((frame) => frame !== "");
  if (frames.pop() !== "data: [DONE]") throw new Error(`no end: ${text}`);
  return frames.map((frame) => JSON.parse(frame.replace(/^(event: error\n)?data: /, "")));
}

/** What the parts of a streamed chat add up to, as a whole reply has it. */
export function joined(events: readonly ReplyObject[]): {
  content: string;
  reasoning: string;
  calls: readonly { name: string; arguments: string }[];
  finish: string | null | undefined;
} {
  const deltas = events.flatMap(({ choices }) => choices.map(({ delta }) => delta ?? {}));
  return {
    content: deltas.map(({ content }) => content ?? "").join(""),
    reasoning: deltas.map((delta) => delta.reasoning_content ?? "").join(""),
    calls: joinedCalls(deltas.flatMap(({ tool_calls }) => tool_calls ?? [])),
    finish: events.findLast(({ choices }) => choices.length > 0)?.choices[0]?.finish_reason,
  };
}

/** A call's first delta names it, and those behind it bring its arguments. */
function joinedCalls(deltas: readonly ToolCallDelta[]): { name: string; arguments: string }[] {
  const calls: { name: string; arguments: string }[] = [];
  for (const { index, id, function: fn } of deltas) {
    if (id !== undefined) calls.push({ name: fn.name!, arguments: fn.arguments });
    else calls.at(-1)!.arguments += fn.arguments;
    expect(index).toBe(calls.length - 1);
  }
  return calls;
}

/** Posts what must be refused, and checks the whole error. */
export async function expectError(
  app: Hono,
  path: string,
  body: object | string,
  status: number,
  expected: { code: string; param: string | null; words: string },
): Promise<void> {
  const response = await post(app, path, body);
  const { error } = (await response.json()) as { error: ErrorObject };
  const { code, param, words } = expected;
  expect(error).toEqual({
    message: expect.stringContaining(words),
    type: "invalid_request_error",
    param,
    code,
  });
  expect(response.status).toBe(status);
}
