import { expect, test } from "vitest";
import { chatBody } from "./chat-body.ts";
import { fullReply, reply, user } from "./conversation.cases.ts";
import { plainSettings } from "./settings.ts";

const streaming = { stream: true, stream_options: { include_usage: true } };

test("what is left to the server isn't sent", () => {
  expect(chatBody([user("u", null, "Hi")], plainSettings, 7)).toEqual({
    messages: [{ role: "user", content: "Hi" }],
    seed: 7,
    ...streaming,
  });
});

test("every setting reaches the request", () => {
  const tool = { type: "function", function: { name: "f" } };
  const settings = {
    systemPrompt: "Be short.",
    temperature: 0,
    topP: 0.5,
    topK: 0,
    minP: 0.1,
    maxTokens: 9,
    seed: 7,
    thinking: false,
    drafts: false,
    tools: JSON.stringify([tool]),
  };
  expect(chatBody([], settings, 7)).toEqual({
    messages: [{ role: "system", content: "Be short." }],
    temperature: 0,
    top_p: 0.5,
    top_k: 0,
    min_p: 0.1,
    max_tokens: 9,
    seed: 7,
    chat_template_kwargs: { enable_thinking: false },
    draft: false,
    tools: [tool],
    ...streaming,
  });
});

test("thinking is asked for, and blank texts are none", () => {
  const settings = { ...plainSettings, thinking: true, systemPrompt: " \n", tools: " " };
  expect(chatBody([], settings, 1)).toEqual({
    messages: [],
    chat_template_kwargs: { enable_thinking: true },
    seed: 1,
    ...streaming,
  });
});

test("replies go back with reasoning and calls, and those that never spoke don't", () => {
  const messages = [
    user("u", null),
    reply("empty", "u", { text: "", reasoning: "hm", ending: "stopped" }),
    fullReply,
    { role: "tool", id: "t", parent: "full", callId: "call_1", text: "2", createdSeconds: 1 },
    reply("a", "t"),
  ] as const;
  const call = { id: "call_1", type: "function", function: { name: "f", arguments: '{"a":1}' } };
  expect(chatBody(messages, plainSettings, 1)).toMatchObject({
    messages: [
      { role: "user", content: "u" },
      { role: "assistant", content: "full", reasoning_content: "hm", tool_calls: [call] },
      { role: "tool", tool_call_id: "call_1", content: "2" },
      { role: "assistant", content: "a" },
    ],
  });
});
