import { type AIMessageChunk, HumanMessage, type ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { ChatOpenAI, OpenAI } from "@langchain/openai";
import { afterAll, expect, test } from "vitest";
import { z } from "zod";
import { addCall, listenScripted } from "./listening.cases.ts";

const scripted = await listenScripted();
afterAll(async () => await scripted[Symbol.asyncDispose]());

const options = {
  model: "nano",
  apiKey: "none",
  maxRetries: 0,
  configuration: { baseURL: scripted.baseUrl },
};
const chat = new ChatOpenAI(options);

const add = tool(async ({ a, b }: { a: number; b: number }) => String(a + b), {
  name: "add",
  description: "Adds two numbers",
  schema: z.object({ a: z.number(), b: z.number() }),
});

async function joinedChunks(stream: AsyncIterable<AIMessageChunk>): Promise<AIMessageChunk> {
  const chunks: AIMessageChunk[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks.reduce((all, chunk) => all.concat(chunk));
}

test("invoke", async () => {
  scripted.say("Hm.\n</think>\n\nGood day");
  expect(await chat.invoke("Hello")).toMatchObject({
    content: "Good day",
    usage_metadata: { output_token_details: { reasoning: 4 } },
    response_metadata: { finish_reason: "stop", model_name: "nano" },
  });
});

test("stream", async () => {
  scripted.say("Hm.\n</think>\n\nGood day \u{1F980}");
  expect(await joinedChunks(await chat.stream("Hello"))).toMatchObject({
    content: "Good day \u{1F980}",
    usage_metadata: { output_token_details: { reasoning: 4 } },
  });
});

test("a tool and a second turn", async () => {
  scripted.say(`Sum.\n</think>\n\n${addCall(1, 2)}`, "\n</think>\n\n3.");
  const offering = chat.bindTools([add]);
  const asked = new HumanMessage("1 + 2?");
  const called = await offering.invoke([asked]);
  expect(called.tool_calls).toMatchObject([{ name: "add", args: { a: 1, b: 2 } }]);
  const result = (await add.invoke(called.tool_calls![0]!)) as ToolMessage;
  expect(result.content).toBe("3");
  const { content } = await offering.invoke([asked, called, result]);
  expect(content).toBe("3.");
});

test("a streamed call", async () => {
  scripted.say(`\n</think>\n\n${addCall(1, 2)}`);
  const all = await joinedChunks(await chat.bindTools([add]).stream("1 + 2?"));
  expect(all).toMatchObject({ tool_calls: [{ name: "add", args: { a: 1, b: 2 } }] });
});

test("structured output", async () => {
  scripted.say('\n</think>\n\n{"city":"Oslo","days":3}');
  const schema = z.object({ city: z.string(), days: z.number().int() });
  const structured = chat.withStructuredOutput(schema, { name: "trip", method: "jsonSchema" });
  expect(await structured.invoke("Where, and for how long?")).toEqual({ city: "Oslo", days: 3 });
});

test("responses", async () => {
  scripted.say("Hm.\n</think>\n\nGood day");
  const { text } = await new ChatOpenAI({ ...options, useResponsesApi: true }).invoke("Hello");
  expect(text).toBe("Good day");
});

test("completions", async () => {
  scripted.say("there was a crab");
  expect(await new OpenAI(options).invoke("Once")).toBe("there was a crab");
});
