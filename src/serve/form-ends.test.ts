/** A reply that is held to a form ends in it where its tokens allow that, whatever is drawn. */
import { afterAll, expect, test } from "vitest";
import { endServers, testServer } from "./engine.cases.ts";
import { chatPath, hello, replyTo } from "./http.cases.ts";

const server = testServer();
const { app } = server;
afterAll(() => endServers(server));

const noThinking = { chat_template_kwargs: { enable_thinking: false } };
const parameters = {
  type: "object",
  properties: { text: { type: "string" }, again: { type: "boolean" } },
  required: ["text", "again"],
  additionalProperties: false,
};
const tools = [{ type: "function", function: { name: "say", parameters } }];
const json_schema = { name: "said", schema: parameters };
const seeds = [1, 2, 3, 4, 5, 6];

test.each(seeds)("JSON, with seed %i", async (seed) => {
  const response_format = { type: "json_schema", json_schema };
  const asked = { messages: hello, max_tokens: 40, seed, response_format, ...noThinking };
  const [choice] = (await replyTo(app, chatPath, asked)).choices;
  expect(choice!.finish_reason).toBe("stop");
  const said = JSON.parse(choice!.message!.content!);
  expect(said).toEqual({ text: expect.any(String), again: expect.any(Boolean) });
});

test.each(seeds)("a call, with seed %i", async (seed) => {
  const asked = { messages: hello, max_tokens: 70, seed, tools, tool_choice: "required" };
  const [choice] = (await replyTo(app, chatPath, { ...asked, ...noThinking })).choices;
  expect(choice!.finish_reason).toBe("tool_calls");
  for (const call of choice!.message!.tool_calls!) {
    const given = JSON.parse(call.function.arguments);
    expect(given).toEqual({ text: expect.any(String), again: expect.any(Boolean) });
  }
});

test("too few tokens for any call are used as they come", async () => {
  const asked = { messages: hello, max_tokens: 5, tools, tool_choice: "required", ...noThinking };
  const { choices, usage } = await replyTo(app, chatPath, asked);
  expect([choices[0]!.finish_reason, usage!.completion_tokens]).toEqual(["length", 5]);
});
