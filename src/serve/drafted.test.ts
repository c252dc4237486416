/** Whatever a request asks for, drafts change no token of its reply. */
import type { Hono } from "hono";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Engine } from "../engine.ts";
import { openEngine } from "../node.ts";
import { createApp } from "./app.ts";
import { chatPath, type ReplyObject, replyTo, textPath } from "./http.cases.ts";

let engine: Engine;
let app: Hono;
beforeAll(async () => {
  engine = await openEngine("nano", { threads: 2, contextTokens: 1024, parallel: 3 });
  app = createApp({ engine });
});
afterAll(async () => {
  await engine[Symbol.asyncDispose]();
});

const ask = (content: string) => ({ messages: [{ role: "user", content }], max_tokens: 70 });
const copy = ask("Repeat: the lighthouse keeper wrote, the lighthouse keeper wrote, and so on.");
const tool = (name: string, properties: object) => ({
  type: "function",
  function: { name, parameters: { type: "object", properties, required: Object.keys(properties) } },
});
const tools = [
  tool("look", { place: { type: "string" }, times: { type: "integer" } }),
  tool("write", { text: { type: "string" }, done: { type: "boolean" } }),
];
const schema = {
  type: "object",
  properties: {
    title: { type: "string", maxLength: 30 },
    places: { type: "array", items: { type: "string", maxLength: 8 }, maxItems: 3 },
    count: { type: "integer" },
  },
  required: ["title", "places", "count"],
  additionalProperties: false,
};
const noThinking = { chat_template_kwargs: { enable_thinking: false } };
const format = { response_format: { type: "json_schema", json_schema: { name: "a", schema } } };

/** Its form has to end before it would by itself. */
const cut = { ...ask("Look at the sea."), ...noThinking, max_tokens: 40 };

const requests: [what: string, path: string, body: object][] = [
  ["plain", chatPath, copy],
  ["logprobs", chatPath, { ...copy, logprobs: true, top_logprobs: 5 }],
  ["penalties", chatPath, { ...copy, repetition_penalty: 1.2, presence_penalty: 0.4 }],
  [
    "a frequency penalty",
    textPath,
    { prompt: "a b a b a b a", max_tokens: 50, frequency_penalty: 1 },
  ],
  ["a bias", chatPath, { ...copy, logit_bias: { 300: 3, 12: -100 } }],
  ["three choices", chatPath, { ...copy, n: 3, temperature: 0.9 }],
  ["tools", chatPath, { ...ask("Look at the sea."), ...noThinking, tools }],
  [
    "a tool",
    chatPath,
    { ...ask("Look at the sea."), tools, tool_choice: "required", thinking_budget: 9 },
  ],
  [
    "one tool, once",
    chatPath,
    {
      ...ask("Write a line."),
      ...noThinking,
      tools,
      tool_choice: { type: "function", function: { name: "write" } },
      parallel_tool_calls: false,
    },
  ],
  ["a budget", chatPath, { ...copy, thinking_budget: 12 }],
  ["a schema", chatPath, { ...ask("A title."), ...noThinking, ...format }],
  ["a schema behind a budget", chatPath, { ...ask("A title."), thinking_budget: 5, ...format }],
  ["any object", chatPath, { ...copy, ...noThinking, response_format: { type: "json_object" } }],
  ["a regex", textPath, { prompt: "Numbers:", max_tokens: 60, guided_regex: "([0-9]{2}, ){8}end" }],
  ["a choice", textPath, { prompt: "Yes or no?", guided_choice: ["yes", "no", "nobody knows"] }],
  ["a cut object", chatPath, { ...cut, ...format }],
  ["a cut call", chatPath, { ...cut, tools, tool_choice: "required" }],
  ["an echo", textPath, { prompt: "Once upon a time", max_tokens: 30, echo: true, logprobs: 2 }],
];

/** What must be the same: all but ids, times and counts of drafts. */
const told = ({ choices, usage }: ReplyObject) => {
  const same = choices.map(({ message, ...choice }) => {
    const calls = message?.tool_calls?.map((call) => call.function);
    return {
      ...choice,
      speculative: null,
      timings: null,
      message: { ...message, tool_calls: calls },
    };
  });
  return { same, tokens: usage!.completion_tokens };
};

let drafted = 0;
test.each(requests)("%s: drafted equals serial", async (_, path, body) => {
  for (const sampling of [{ temperature: 0 }, { temperature: 0.8, top_k: 30, seed: 11 }]) {
    // The cache would make the second cheaper, and could hide a difference.
    const asked = { ...sampling, ...body, cache_prompt: false };
    const serial = await replyTo(app, path, { ...asked, draft: false });
    const reply = await replyTo(app, path, asked);
    expect(reply.token_sha).toBe(serial.token_sha);
    expect(told(reply)).toEqual(told(serial));
    expect(serial.speculative?.drafted ?? 0).toBe(0);
    drafted += reply.speculative?.drafted ?? 0;
  }
});

test("there were drafts", () => {
  expect(drafted).toBeGreaterThan(requests.length);
});
