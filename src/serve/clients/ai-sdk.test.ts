import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { APICallError, generateObject, generateText, isStepCount, streamText, tool } from "ai";
import { afterAll, expect, test } from "vitest";
import { z } from "zod";
import { addCall, listenScripted } from "./listening.cases.ts";

// It would print what it thinks of this file's use of it.
globalThis.AI_SDK_LOG_WARNINGS = false;

const scripted = await listenScripted();
afterAll(async () => await scripted[Symbol.asyncDispose]());

const provider = createOpenAICompatible({
  name: "deltafold",
  baseURL: scripted.baseUrl,
  includeUsage: true,
  supportsStructuredOutputs: true,
});
const model = provider("nano");

const add = tool({
  description: "Adds two numbers",
  inputSchema: z.object({ a: z.number(), b: z.number() }),
  execute: async ({ a, b }) => a + b,
});

test("streamText: text, reasoning, usage and why it ended", async () => {
  scripted.say("Hm.\n</think>\n\nGood day \u{1F980}");
  const result = streamText({ model, prompt: "Hello" });
  let text = "";
  for await (const piece of result.textStream) text += piece;
  expect(text).toBe("Good day \u{1F980}");
  expect(await result.reasoningText).toBe("Hm.");
  expect(await result.finishReason).toBe("stop");
  const { inputTokens, outputTokens, outputTokenDetails } = await result.usage;
  expect(inputTokens).toBeGreaterThan(0);
  expect(outputTokens).toBeGreaterThan(outputTokenDetails.reasoningTokens!);
  expect(outputTokenDetails.reasoningTokens).toBeGreaterThan(0);
});

test("streamText ends at its length", async () => {
  scripted.say("Once upon a time");
  const result = streamText({ model, prompt: "Hello", maxOutputTokens: 2 });
  expect(await result.finishReason).toBe("length");
  expect((await result.usage).outputTokens).toBe(2);
});

test("generateObject", async () => {
  scripted.say('Hm.\n</think>\n\n{"city":"Oslo","days":3}');
  const schema = z.object({ city: z.string(), days: z.number().int() });
  const { object } = await generateObject({ model, schema, prompt: "Where, and for how long?" });
  expect(object).toEqual({ city: "Oslo", days: 3 });
});

test("a loop of tools, whole", async () => {
  scripted.say(
    `Sum.\n</think>\n\n${addCall(1, 2)}`,
    `\n</think>\n\n${addCall(3, 4)}`,
    "7\n</think>\n\n7.",
  );
  const result = await generateText({
    model,
    tools: { add },
    stopWhen: isStepCount(5),
    prompt: "1 + 2 + 4?",
  });
  expect(result.text).toBe("7.");
  const { steps } = result;
  expect(steps.map(({ finishReason }) => finishReason)).toEqual([
    "tool-calls",
    "tool-calls",
    "stop",
  ]);
  const outputs = steps.flatMap(({ toolResults }) => toolResults.map(({ output }) => output));
  expect(outputs).toEqual([3, 7]);
});

test("a loop of tools, streamed, with two calls at once", async () => {
  scripted.say(`\n</think>\n\nSo:\n${addCall(1, 2)}\n${addCall(3, 4)}`, "\n</think>\n\n10");
  const result = streamText({
    model,
    tools: { add },
    stopWhen: isStepCount(5),
    prompt: "1 + 2 + 3 + 4?",
  });
  let text = "";
  for await (const piece of result.textStream) text += piece;
  expect(text).toBe("So:10");
  const [first] = await result.steps;
  expect(first!.toolCalls.map(({ input }) => input)).toEqual([
    { a: 1, b: 2 },
    { a: 3, b: 4 },
  ]);
});

test("errors are the client's own, and those of its requests aren't tried again", async () => {
  const messages = [{ role: "user" as const, content: "Hello" }];
  const asked = generateText({ model, messages, maxOutputTokens: 1_000_000 });
  const error = await asked.catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(APICallError);
  expect(error).toMatchObject({ statusCode: 400, isRetryable: false });
  expect((error as APICallError).message).toContain("maximum context length");
});
