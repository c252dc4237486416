import type { Hono } from "hono";
import { expect } from "vitest";
import { post } from "./http.cases.ts";
import type { ResponseEvent } from "./responses-output.ts";
import type { ResponseObject } from "./responses-store.ts";

export const responsesPath = "/v1/responses";

export const noThinking: object = { chat_template_kwargs: { enable_thinking: false } };

export const weather: object = {
  type: "function",
  name: "get_weather",
  parameters: { type: "object", properties: { city: { type: "string" } } },
};

/** The parts of a response that tests look at. */
export interface TestResponse extends ResponseObject {
  readonly status: string;
  readonly usage: {
    readonly input_tokens: number;
    readonly input_tokens_details: { readonly cached_tokens: number };
    readonly output_tokens: number;
  };
}

export interface TestEvent extends ResponseEvent {
  readonly sequence_number: number;
  readonly response?: TestResponse;
}

export async function respond(app: Hono, body: object): Promise<TestResponse> {
  const reply = await post(app, responsesPath, body);
  const text = await reply.text();
  if (reply.status !== 200) throw new Error(`${reply.status}: ${text}`);
  const response = JSON.parse(text) as TestResponse;
  checkResponse(response);
  return response;
}

/** The events of a streamed response, each of them checked. */
export async function responseEvents(app: Hono, body: object): Promise<TestEvent[]> {
  const reply = await post(app, responsesPath, { ...body, stream: true });
  const text = await reply.text();
  if (reply.status !== 200) throw new Error(`${reply.status}: ${text}`);
  const frames = text.split("\n\n");
  expect(frames.pop()).toBe("");
  const events = frames.map((frame) => {
    const [, name, data] = /^event: (.+)\ndata: (.+)$/.exec(frame)!;
    const event = JSON.parse(data!) as TestEvent;
    expect(event.type).toBe(name);
    return event;
  });
  checkEvents(events);
  return events;
}

/** The response that a stream ends in. */
export function finalOf(events: readonly TestEvent[]): TestResponse {
  return events.at(-1)!.response!;
}

/** A response without what differs from one time to the next. */
export function lasting(response: TestResponse): object {
  const { timings, created_at, completed_at, usage, ...rest } = response;
  const { input_tokens_details, ...tokens } = usage;
  return JSON.parse(
    JSON.stringify({ ...rest, usage: tokens }).replace(
      /"(resp|rs|msg|fc|call)_[a-z2-7]{24}"/g,
      '"$1"',
    ),
  ) as object;
}

/** What OpenAI's description requires of each object, by its `type` or `object`. */
const required: Readonly<Record<string, string>> = {
  response:
    "id object created_at error incomplete_details instructions model tools output " +
    "parallel_tool_calls metadata tool_choice temperature top_p",
  function: "type name strict parameters",
  message: "id type role content status",
  reasoning: "id summary type",
  function_call: "type call_id name arguments",
  output_text: "type text annotations logprobs",
  reasoning_text: "type text",
  "response.created": "type response sequence_number",
  "response.in_progress": "type response sequence_number",
  "response.completed": "type response sequence_number",
  "response.incomplete": "type response sequence_number",
  "response.failed": "type response sequence_number",
  error: "type code message param sequence_number",
  "response.output_item.added": "type output_index item sequence_number",
  "response.output_item.done": "type output_index item sequence_number",
  "response.content_part.added": "type item_id output_index content_index part sequence_number",
  "response.content_part.done": "type item_id output_index content_index part sequence_number",
  "response.output_text.delta":
    "type item_id output_index content_index delta sequence_number logprobs",
  "response.output_text.done":
    "type item_id output_index content_index text sequence_number logprobs",
  "response.reasoning_text.delta": "type item_id output_index content_index delta sequence_number",
  "response.reasoning_text.done": "type item_id output_index content_index text sequence_number",
  "response.function_call_arguments.delta": "type item_id output_index delta sequence_number",
  "response.function_call_arguments.done":
    "type item_id name output_index arguments sequence_number",
};

function checkFields(value: object, name: string): void {
  expect(Object.keys(required)).toContain(name);
  for (const field of required[name]!.split(" ")) expect(value).toHaveProperty([field]);
}

function checkItem(item: Record<string, unknown>): void {
  checkFields(item, item["type"] as string);
  const { content } = item as { content?: { type: string }[] };
  for (const part of content ?? []) checkFields(part, part.type);
}

function checkResponse(response: ResponseObject): void {
  const { output, tools, usage, status } = response as typeof response & Record<string, never[]>;
  checkFields(response, "response");
  for (const item of output) checkItem({ ...item });
  for (const tool of tools!) checkFields(tool, "function");
  if (usage || status === ("completed" as unknown)) {
    expect(usage).toEqual({
      input_tokens: expect.any(Number),
      input_tokens_details: { cached_tokens: expect.any(Number), cache_write_tokens: 0 },
      output_tokens: expect.any(Number),
      output_tokens_details: { reasoning_tokens: expect.any(Number) },
      total_tokens: expect.any(Number),
    });
  }
}

/** Numbers without gaps, items that open and close in turn, texts that their pieces add up to. */
function checkEvents(events: readonly TestEvent[]): void {
  expect(events.slice(0, 2).map(({ type }) => type)).toEqual([
    "response.created",
    "response.in_progress",
  ]);
  const written = new Map<unknown, string>();
  const items: unknown[] = [];
  for (const [index, event] of events.entries()) {
    checkFields(event, event.type);
    expect(event.sequence_number).toBe(index);
    const { response, item, part, item_id, output_index, delta } = event as TestEvent & {
      item?: Record<string, unknown>;
      part?: { type: string };
    };
    if (response) checkResponse(response);
    if (item) checkItem(item);
    if (part) checkFields(part, part.type);
    if (event.type === "response.output_item.added") {
      expect(output_index).toBe(items.length);
      items.push(item!["id"]);
      written.set(item!["id"], "");
    } else if (item) expect(items[output_index as number]).toBe(item["id"]);
    if (item_id === undefined) continue;
    expect(items.at(-1)).toBe(item_id);
    expect(output_index).toBe(items.length - 1);
    if (typeof delta === "string") written.set(item_id, written.get(item_id)! + delta);
    if (/(text|arguments)\.done$/.test(event.type)) {
      expect(event["text"] ?? event["arguments"]).toBe(written.get(item_id));
    }
  }
  const { output } = finalOf(events);
  if (finalOf(events).status === "failed") return;
  const done = events.filter(({ type }) => type === "response.output_item.done");
  expect(done.map(({ item }) => item)).toEqual(output);
}
