import { afterAll, beforeAll, expect, test } from "vitest";
import type { Engine } from "./engine.ts";
import { ContextLengthError } from "./errors.ts";
import { openEngine } from "./node.ts";
import type { Stream } from "./stream.ts";
import { joinParts, type ReplyPart } from "./text/reply-parser.ts";

let engine: Engine;
beforeAll(async () => {
  engine = await openEngine("nano", { threads: 2, contextTokens: 512 });
});
afterAll(async () => {
  await engine[Symbol.asyncDispose]();
});

const messages = [{ role: "user", content: "What is 12 + 30?" }];
const greedy = { temperature: 0 };

async function partsOf(stream: Stream): Promise<ReplyPart[]> {
  const parts: ReplyPart[] = [];
  for await (const event of stream) if (event.type !== "logprobs") parts.push(event);
  return parts;
}

test("a chat reply is split, and its events joined are its result", async () => {
  const stream = engine.chat({ messages, ...greedy });
  const { reasoning, content, toolCalls } = joinParts(await partsOf(stream));
  const reply = await stream.result;
  expect(reply).toMatchObject({ reasoning, content, toolCalls, finishReason: "stop" });
  expect(content).toContain("42");
  expect(reply.reasoning).not.toBe("");
  expect(reply.text).toContain("</think>");
  expect(reply.text).not.toContain("<|im_end|>");
  expect(reply.promptTokens).toBe(stream.promptTokens);
});

test("a prompt's chances come without the reply's, and no more than may be held", async () => {
  const prompt = [5, 6, 7];
  const asked = { prompt, promptLogprobs: true, maxTokens: 0, ...greedy };
  const { promptLogprobs, logprobs, ids } = await engine.complete(asked).result;
  expect([logprobs, ids]).toEqual([null, []]);
  expect(promptLogprobs!.map(({ id, top }) => [id, top.length])).toEqual([
    [5, 0],
    [6, 0],
    [7, 0],
  ]);
  expect(promptLogprobs![0]!.logprob).toBeNull();
  for (const { logprob } of promptLogprobs!.slice(1)) expect(logprob).toBeLessThan(0);
  expect(() => engine.complete({ ...asked, topLogprobs: 2 ** 20 })).toThrow(/1048576 are the most/);
});

test("thinking can be switched off", async () => {
  const templateKwargs = { enable_thinking: false };
  const { reasoning, content } = await engine.chat({ messages, templateKwargs, ...greedy }).result;
  expect(reasoning).toBe("");
  expect(content).not.toBe("");
});

test("an offered tool is called", async () => {
  const tool = {
    type: "function" as const,
    function: {
      name: "get_weather",
      description: "Get the current weather for a city",
      parameters: { type: "object", properties: { city: { type: "string" } } },
    },
  };
  const question = [{ role: "user", content: "What is the weather in Paris?" }];
  const reply = await engine.chat({ messages: question, tools: [tool], ...greedy }).result;
  expect(reply.finishReason).toBe("tool_calls");
  expect(reply.toolCalls).toEqual([{ name: "get_weather", arguments: '{"city":"Paris"}' }]);
});

test("the same request gives the same tokens and state, whoever else is served", async () => {
  const request = { messages, temperature: 1, fingerprint: true };
  const first = await engine.chat(request).result;
  const others = [1, 2, 3].map((seed) => engine.chat({ messages, temperature: 1, seed }).result);
  const again = await engine.chat(request).result;
  const replies = await Promise.all(others);
  expect([again.tokenSha, again.stateSha]).toEqual([first.tokenSha, first.stateSha]);
  // Seeds do differ from each other.
  expect(new Set(replies.map((reply) => reply.tokenSha)).size).toBeGreaterThan(1);
});

test("a stop string ends the reply before its text, wherever tokens cut it", async () => {
  const whole = (
    await engine.complete({ prompt: "one two three", maxTokens: 40, ...greedy }).result
  ).text;
  expect(whole.length).toBeGreaterThan(10);
  for (const at of [2, 5, 9]) {
    const stop = whole.slice(at, at + 4);
    const request = { prompt: "one two three", maxTokens: 40, stop: [stop], ...greedy };
    const reply = await engine.complete(request).result;
    expect(reply.text).toBe(whole.slice(0, whole.indexOf(stop)));
    expect(reply).toMatchObject({ finishReason: "stop", stopSequence: stop });
  }
});

test("max tokens are exact, and ignoreEos goes past the end", async () => {
  const reply = await engine.chat({ messages, maxTokens: 5, ...greedy }).result;
  expect(reply).toMatchObject({ finishReason: "length" });
  expect(reply.ids).toHaveLength(5);
  const long = await engine.chat({ messages, maxTokens: 120, ignoreEos: true, ...greedy }).result;
  expect(long.ids).toHaveLength(120);
});

test("the context is exact: what fits is served, one token more is refused with both numbers", async () => {
  const prompt = new Array<number>(500).fill(5);
  const full = await engine.complete({ prompt, maxTokens: 12, ignoreEos: true, ...greedy }).result;
  expect(full.ids).toHaveLength(12);
  const over = () => engine.complete({ prompt, maxTokens: 13 });
  expect(over).toThrow(ContextLengthError);
  expect(over).toThrow(/maximum context length is 512 tokens.*513 tokens \(500 in the prompt/);
  expect(() => engine.complete({ prompt: new Array<number>(512).fill(5) })).toThrow(
    /your prompt resulted in 512 tokens/,
  );
  // Without a limit of its own a reply takes what is left.
  const rest = await engine.complete({ prompt, ignoreEos: true, ...greedy }).result;
  expect(rest.ids).toHaveLength(12);
});

test("bad requests are refused before they start", () => {
  const refused: readonly (readonly [() => unknown, RegExp])[] = [
    [() => engine.complete({ prompt: "" }), /prompt must not be empty/],
    [() => engine.complete({ prompt: [] }), /prompt must not be empty/],
    [() => engine.complete({ prompt: [8185] }), /8185 is not in the vocabulary of 8185/],
    [() => engine.complete({ prompt: [-1] }), /-1 is not in the vocabulary/],
    [() => engine.complete({ prompt: [1.5] }), /1.5 is not in the vocabulary/],
    [() => engine.complete({ prompt: [Number.NaN] }), /NaN is not in the vocabulary/],
    [() => engine.complete({ prompt: "a", maxTokens: 0 }), /max_tokens/],
    [() => engine.complete({ prompt: "a", maxTokens: 2.5 }), /max_tokens/],
    [() => engine.complete({ prompt: "a", temperature: Number.NaN }), /temperature/],
    [() => engine.complete({ prompt: "a", stop: [""] }), /stop/],
    [() => engine.complete({ prompt: "a", logit_bias: { 8185: 1 } }), /8185 is not in the vocab/],
    [() => engine.chat({ messages: [] }), /messages must not be empty/],
    [
      () => engine.chat({ messages: [{ role: "wizard", content: "a" }] }),
      /messages\[0\]\.role must be .*"wizard"/,
    ],
  ];
  for (const [request, message] of refused) expect(request).toThrow(message);
  expect(engine.counts).toEqual({ waiting: 0, running: 0 });
});

test("leaving the loop cancels, and so does cancel()", async () => {
  const left = engine.complete({ prompt: "a", maxTokens: 400, ignoreEos: true });
  for await (const _ of left) break;
  expect((await left.result).finishReason).toBe("cancelled");
  const cancelled = engine.complete({ prompt: "a", maxTokens: 400, ignoreEos: true });
  await cancelled.started;
  cancelled.cancel();
  const reply = await cancelled.result;
  expect(reply.finishReason).toBe("cancelled");
  expect(reply.ids.length).toBeLessThan(400);
  expect(engine.counts).toEqual({ waiting: 0, running: 0 });
});

test("two readers of one stream both get all of it", async () => {
  const stream = engine.chat({ messages, ...greedy });
  const [first, second] = await Promise.all([partsOf(stream), partsOf(stream)]);
  expect(first).toEqual(second);
  expect(first.length).toBeGreaterThan(3);
});

test("a long prompt is encoded with turns for others in between, and then has its tokens at once", async () => {
  /** Turns that others have while `work` goes on. */
  const turnsOf = async (work: Promise<void>) => {
    let turns = 0;
    const timer = setInterval(() => turns++, 0);
    await work;
    clearInterval(timer);
    return turns;
  };
  const words = (from: number) =>
    Array.from({ length: 9000 }, (_, at) => `word${from + at}`).join(" ");
  const text = words(0);
  expect(await turnsOf(engine.prepare(text))).toBeGreaterThan(0);
  expect(await turnsOf(engine.prepare(text))).toBe(0);
  const messages = [{ role: "user", content: words(1e6) }];
  expect(await turnsOf(engine.prepare({ messages }))).toBeGreaterThan(0);
  expect(await turnsOf(engine.prepare({ messages }))).toBe(0);
  // What is wrong is said by those who use it.
  await engine.prepare({ messages: [{ role: "user", content: "a".repeat(200_000) }] });
  await engine.prepare({ messages: [{ role: "nobody", content: words(2e6) }] });
});
