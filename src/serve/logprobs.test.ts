import { afterAll, expect, test } from "vitest";
import { endServers, testServer, tokenizer } from "./engine.cases.ts";
import { chatPath, eventsOf, expectError, hello, replyTo, textPath } from "./http.cases.ts";

const random = testServer();
/** Every row gives tokens 5, 6 and 7 a half, a quarter and an eighth, and the others the rest. */
const steady = testServer({
  logits: (row) => {
    const others = 1 / 8 / (row.length - 3);
    row.fill(Math.log(others));
    row.set([1 / 2, 1 / 4, 1 / 8].map(Math.log), 5);
  },
});
afterAll(() => endServers(random, steady));

const greedy = { max_tokens: 3, temperature: 0, ignore_eos: true };
const near = (probability: number) => expect.closeTo(Math.log(probability), 4);
const named = (id: number, probability: number) => ({
  token: tokenizer.decode([id]),
  bytes: [...tokenizer.tokenBytes(id)],
  logprob: near(probability),
});

test("a chat's tokens with how likely they were, and the likeliest beside them", async () => {
  const body = { messages: hello, ...greedy, logprobs: true, top_logprobs: 3 };
  const { choices } = await replyTo(steady.app, chatPath, body);
  const token = {
    ...named(5, 1 / 2),
    top_logprobs: [named(5, 1 / 2), named(6, 1 / 4), named(7, 1 / 8)],
  };
  expect(choices[0]!.logprobs).toEqual({ content: [token, token, token], refusal: null });
});

test("without top_logprobs the tokens stand alone; without logprobs there are none", async () => {
  const body = { messages: hello, ...greedy };
  const { choices } = await replyTo(steady.app, chatPath, { ...body, logprobs: true });
  const token = { ...named(5, 1 / 2), top_logprobs: [] };
  expect(choices[0]!.logprobs).toEqual({ content: [token, token, token], refusal: null });
  for (const none of [{}, { logprobs: false }, { logprobs: null, top_logprobs: 0 }]) {
    const plain = await replyTo(steady.app, chatPath, { ...body, ...none });
    expect(plain.choices[0]!.logprobs).toBeNull();
    const events = await eventsOf(steady.app, chatPath, { ...body, ...none });
    for (const {
      choices: [choice],
    } of events)
      expect(choice).not.toHaveProperty("logprobs");
  }
});

test("chances are the model's own, whatever draws the tokens", async () => {
  const body = { prompt: [5], ...greedy, logprobs: 2, logit_bias: { 7: 100 } };
  const { choices } = await replyTo(steady.app, textPath, body);
  const [seventh, fifth, sixth] = [7, 5, 6].map((id) => tokenizer.decode([id]));
  const top = { [fifth!]: near(1 / 2), [sixth!]: near(1 / 4), [seventh!]: near(1 / 8) };
  expect(choices[0]!.logprobs).toEqual({
    tokens: [seventh, seventh, seventh],
    token_logprobs: [near(1 / 8), near(1 / 8), near(1 / 8)],
    top_logprobs: [top, top, top],
    text_offset: [0, 1, 2].map((place) => place * seventh!.length),
  });
});

test("streamed, every token's chances come once, in order", async () => {
  const sampled = { max_tokens: 60, ignore_eos: true, seed: 8, top_k: 0 };
  const chat = { messages: hello, ...sampled, logprobs: true, top_logprobs: 2 };
  const whole = (await replyTo(random.app, chatPath, chat)).choices[0]!.logprobs!;
  expect(whole.content).toHaveLength(60);
  const events = await eventsOf(random.app, chatPath, chat);
  expect(events.flatMap(({ choices }) => choices[0]!.logprobs?.content ?? [])).toEqual(
    whole.content,
  );

  const text = { prompt: "Once", ...sampled, logprobs: 1 };
  const wholeText = (await replyTo(random.app, textPath, text)).choices[0]!.logprobs!;
  const parts = (await eventsOf(random.app, textPath, text)).map(
    ({ choices }) => choices[0]!.logprobs,
  );
  for (const list of ["tokens", "token_logprobs", "top_logprobs", "text_offset"] as const) {
    expect(parts.flatMap((part): unknown[] => [...(part?.[list] ?? [])])).toEqual(wholeText[list]);
  }
});

test("asking for chances changes no token", async () => {
  const body = { messages: hello, max_tokens: 80, seed: 4, temperature: 1 };
  const plain = await replyTo(random.app, chatPath, body);
  const asked = await replyTo(random.app, chatPath, { ...body, logprobs: true, top_logprobs: 20 });
  expect(asked.token_sha).toBe(plain.token_sha);
});

test("an echoed prompt comes with its tokens' chances, all but the first's", async () => {
  const prompt = [5, 6, 900, 7];
  const body = { prompt, ...greedy, max_tokens: 1, echo: true, logprobs: 1 };
  const reply = await replyTo(steady.app, textPath, body);
  const texts = [...prompt, 5].map((id) => tokenizer.decode([id]));
  const { logprobs, text } = reply.choices[0]!;
  expect(text).toBe(texts.join(""));
  expect(logprobs!.tokens).toEqual(texts);
  const rest = near(1 / 8 / (steady.backend.info.shape.vocabSize - 3));
  expect(logprobs!.token_logprobs).toEqual([null, near(1 / 4), rest, near(1 / 8), near(1 / 2)]);
  expect(logprobs!.top_logprobs![0]).toBeNull();
  expect(logprobs!.top_logprobs![1]).toEqual({
    [texts[0]!]: near(1 / 2),
    [texts[1]!]: near(1 / 4),
  });
  expect(logprobs!.text_offset![1]).toBe(texts[0]!.length);
  expect(reply.usage).toMatchObject({ prompt_tokens: 4, completion_tokens: 1 });
});

test("with an echo, no tokens may be asked for: what scoring a text needs", async () => {
  const prompt = "Once upon a time there was a lighthouse.";
  const body = { prompt, max_tokens: 0, echo: true, logprobs: 0 };
  const reply = await replyTo(random.app, textPath, body);
  const { text, logprobs, finish_reason } = reply.choices[0]!;
  expect([text, finish_reason]).toEqual([prompt, "length"]);
  const ids = tokenizer.encode(prompt);
  expect(logprobs!.tokens).toEqual(ids.map((id) => tokenizer.decode([id])));
  expect(logprobs!.token_logprobs!.slice(1).every((value) => value! < 0)).toBe(true);
  expect(reply.usage).toMatchObject({ prompt_tokens: ids.length, completion_tokens: 0 });
  // Scored again it is computed again: nothing of it is cached.
  expect(await replyTo(random.app, textPath, body)).toMatchObject({
    choices: reply.choices,
    usage: { prompt_tokens_details: { cached_tokens: 0 } },
  });
});

test("an echo alone only puts the prompt before the reply, streamed too", async () => {
  const body = { prompt: "Once", max_tokens: 5, seed: 1, ignore_eos: true };
  const { choices } = await replyTo(random.app, textPath, body);
  const echoed = await replyTo(random.app, textPath, { ...body, echo: true });
  expect(echoed.choices[0]!.text).toBe(`Once${choices[0]!.text}`);
  const events = await eventsOf(random.app, textPath, { ...body, echo: true });
  expect(events.map((event) => event.choices[0]!.text).join("")).toBe(echoed.choices[0]!.text);
});

test.each([
  [chatPath, { logprobs: 3 }, "invalid_type", "logprobs", "true or false"],
  [chatPath, { logprobs: true, top_logprobs: 21 }, "invalid_type", "top_logprobs", "from 0 to 20"],
  [chatPath, { logprobs: true, top_logprobs: -1 }, "invalid_type", "top_logprobs", "not -1"],
  [chatPath, { top_logprobs: 5 }, "invalid_value", "top_logprobs", "needs logprobs"],
  [chatPath, { logprobs: false, top_logprobs: 1 }, "invalid_value", "top_logprobs", "needs"],
  [textPath, { logprobs: true }, "invalid_type", "logprobs", "from 0 to 20, not true"],
  [textPath, { logprobs: 21 }, "invalid_type", "logprobs", "not 21"],
  [textPath, { echo: 1 }, "invalid_type", "echo", "true or false"],
  [textPath, { max_tokens: 0 }, "invalid_value", "max_tokens", "at least 1, not 0"],
  [textPath, { echo: true, max_tokens: 0 }, "invalid_value", "max_tokens", "at least 1"],
  [textPath, { echo: true, logprobs: 1, n: 2 }, "unsupported_parameter", "n", "one choice"],
  [
    textPath,
    { echo: true, logprobs: 1, stream: true },
    "unsupported_parameter",
    "echo",
    "can't be streamed",
  ],
])("%s refuses %j", async (path, fields, code, param, words) => {
  const body = path === chatPath ? { messages: hello } : { prompt: "a" };
  await expectError(random.app, path, { ...body, ...fields }, 400, { code, param, words });
});
