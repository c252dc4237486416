import { afterAll, expect, test } from "vitest";
import { endServers, Script, testServer, tokenizer } from "./engine.cases.ts";
import { eventsOf, replyTo, textPath } from "./http.cases.ts";

const random = testServer({ chat: false });
const script = new Script();
const scripted = testServer({ logits: script.logits });
afterAll(() => endServers(random, scripted));

test("a text and its ids are the same prompt", async () => {
  const prompt = "Once upon a time";
  const byText = await replyTo(random.app, textPath, { prompt, max_tokens: 8 });
  const ids = tokenizer.encode(prompt);
  const byIds = await replyTo(random.app, textPath, { prompt: ids, max_tokens: 8 });
  expect(byIds.token_sha).toBe(byText.token_sha);
  expect(byText).toEqual({
    id: expect.stringMatching(/^cmpl-[a-z2-7]{24}$/),
    object: "text_completion",
    created: expect.any(Number),
    model: "nano",
    choices: [{ index: 0, text: expect.any(String), logprobs: null, finish_reason: "length" }],
    usage: {
      prompt_tokens: ids.length,
      completion_tokens: 8,
      total_tokens: ids.length + 8,
      prompt_tokens_details: { cached_tokens: 0 },
      completion_tokens_details: { reasoning_tokens: 0 },
    },
    stop_sequence: null,
    token_sha: expect.any(String),
    timings: expect.any(Object),
    speculative: { rounds: 7, drafted: 0, accepted: 0, tokens_per_round: 1, by_drafter: {} },
  });
});

test("one token has no decoding speed", async () => {
  const { timings } = await replyTo(random.app, textPath, { prompt: "a", max_tokens: 1 });
  expect(timings).not.toHaveProperty("tokens_per_second");
});

test("markup is plain text", async () => {
  const text = "<think>a</think> <tool_call>";
  script.say(text);
  const { choices } = await replyTo(scripted.app, textPath, { prompt: "x" });
  expect(choices[0]).toMatchObject({ text, finish_reason: "stop" });
});

test("the parts of a stream add up to the whole reply, at every max_tokens", async () => {
  for (let max_tokens = 1; max_tokens <= 30; max_tokens++) {
    const body = { prompt: "x", max_tokens, seed: 3, top_k: 50, top_p: 1 };
    const whole = await replyTo(random.app, textPath, body);
    const events = await eventsOf(random.app, textPath, body);
    const text = events.map(({ choices }) => choices[0]!.text).join("");
    expect(text).toBe(whole.choices[0]!.text);
    expect(events.at(-1)!.token_sha).toBe(whole.token_sha);
    expect(events.at(-1)!.choices[0]!.finish_reason).toBe("length");
  }
});

test("include_usage adds a last event with no choices", async () => {
  const body = { prompt: "x", max_tokens: 3, stream_options: { include_usage: true } };
  const events = await eventsOf(random.app, textPath, body);
  const usage = { prompt_tokens: 1, completion_tokens: 3 };
  expect(events.at(-1)).toMatchObject({ object: "text_completion", choices: [], usage });
  for (const event of events.slice(0, -1)) expect(event).not.toHaveProperty("usage");
});
