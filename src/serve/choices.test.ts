import { afterAll, expect, test } from "vitest";
import { nextTask } from "../clock.ts";
import { endServers, idle, testServer, tokenizer } from "./engine.cases.ts";
import {
  chatPath,
  eventsOf,
  expectError,
  hello,
  joined,
  post,
  replyTo,
  textPath,
} from "./http.cases.ts";

let rows = 0;
const server = testServer({ slots: 3, onPass: (more) => (rows += more) });
const { app } = server;
afterAll(() => endServers(server));

const chat = { messages: hello, max_tokens: 12, ignore_eos: true, temperature: 1 };

test("each choice is the reply to a seed of its own, one more each", async () => {
  const { choices, usage, token_sha } = await replyTo(app, chatPath, { ...chat, seed: 7, n: 3 });
  expect(choices.map(({ index }) => index)).toEqual([0, 1, 2]);
  expect(new Set(choices.map((each) => each.token_sha)).size).toBe(3);
  for (const [index, choice] of choices.entries()) {
    const alone = await replyTo(app, chatPath, { ...chat, seed: 7 + index });
    expect(choice.token_sha).toBe(alone.token_sha);
    expect(choice.message).toEqual(alone.choices[0]!.message);
  }
  // What is told of one reply has no place beside several.
  expect(token_sha).toBeUndefined();
  expect(usage!.completion_tokens).toBe(36);
});

test("without a seed too, the first is what one reply would be", async () => {
  const body = { prompt: "Once upon", max_tokens: 9, ignore_eos: true };
  const { choices } = await replyTo(app, textPath, { ...body, n: 2 });
  const alone = await replyTo(app, textPath, body);
  expect(choices[0]!.text).toBe(alone.choices[0]!.text);
  expect(choices[1]!.text).not.toBe(choices[0]!.text);
});

test("streamed, the choices' events say whose they are, and end one by one", async () => {
  const body = { ...chat, seed: 3, n: 3, logprobs: true };
  const whole = await replyTo(app, chatPath, body);
  const options = { stream_options: { include_usage: true } };
  const events = await eventsOf(app, chatPath, { ...body, ...options });
  expect(events.pop()).toMatchObject({ choices: [], usage: { completion_tokens: 36 } });
  for (const { index, message, token_sha, logprobs } of whole.choices) {
    const own = events.filter(({ choices }) => choices[0]!.index === index);
    expect(own[0]!.choices[0]!.delta).toEqual({ role: "assistant", content: "" });
    const { content, reasoning, finish } = joined(own);
    expect([content, finish]).toEqual([message!.content, "length"]);
    expect(reasoning).toBe(message!.reasoning_content ?? "");
    expect(own.at(-1)!.token_sha).toBe(token_sha);
    expect(own.flatMap(({ choices }) => choices[0]!.logprobs?.content ?? [])).toEqual(
      logprobs!.content,
    );
  }
});

test("the prompt is computed once", async () => {
  const words = Array.from({ length: 200 }, (_, at) => `word${at}`).join(" ");
  const before = rows;
  const body = { prompt: words, max_tokens: 1, n: 3 };
  await replyTo(app, textPath, body);
  const prompt = tokenizer.encode(words).length;
  expect(rows - before).toBeLessThan(prompt + 3 * 4);
});

test("more than are served at once is refused, and so is what isn't a number of replies", async () => {
  const words = "n may be at most 3 here, not 4.";
  const body = { ...chat, n: 4 };
  await expectError(app, chatPath, body, 400, { code: "too_many", param: "n", words });
  for (const n of [0, -1, 1.5, "2", true]) {
    const rule = { code: "invalid_type", param: "n", words: "a whole number over 0" };
    await expectError(app, textPath, { prompt: "a", n }, 400, rule);
  }
});

test("a client that hangs up ends all of its choices", async () => {
  const hangUp = new AbortController();
  const body = { ...chat, max_tokens: 3000, n: 3, stream: true };
  const response = await post(app, chatPath, body, { signal: hangUp.signal });
  const reader = response.body!.getReader();
  await reader.read();
  hangUp.abort();
  await reader.cancel().catch(() => {});
  await idle(server);
});

test.each([false, true])("where one finds no place, none goes on (stream %s)", async (stream) => {
  const full = testServer({ slots: 3, parts: { queueMax: 0 } });
  const other = full.engine.complete({ prompt: "x", maxTokens: 4000, ignoreEos: true });
  await other.started;
  const refused = await post(full.app, chatPath, { ...chat, max_tokens: 2000, n: 3, stream });
  expect(refused.status).toBe(429);
  while (full.engine.counts.running > 1) await nextTask();
  expect(full.engine.counts).toEqual({ waiting: 0, running: 1 });
  await full.engine[Symbol.asyncDispose]();
});
