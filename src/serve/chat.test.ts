import { afterAll, expect, test } from "vitest";
import { endServers, Script, testServer, tokenizer } from "./engine.cases.ts";
import { chatPath, eventsOf, hello, joined, post, replyTo } from "./http.cases.ts";

const random = testServer();
const script = new Script();
const scripted = testServer({ logits: script.logits });
afterAll(() => endServers(random, scripted));

const weather = {
  type: "function",
  function: {
    name: "get_weather",
    parameters: { type: "object", properties: { city: { type: "string" } } },
  },
};
const call = (city: string) =>
  `<tool_call>\n<function=get_weather>\n<parameter=city>\n${city}\n</parameter>\n</function>\n</tool_call>`;

test("a whole reply is a chat.completion", async () => {
  script.say("Hmm.\n</think>\n\nGood day");
  const reply = await replyTo(scripted.app, chatPath, { model: "whatever", messages: hello });
  const prompt = "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n<think>\n";
  const prompt_tokens = tokenizer.encode(prompt).length;
  const completion_tokens = tokenizer.encode("Hmm.\n</think>\n\nGood day").length + 1;
  expect(reply).toEqual({
    id: expect.stringMatching(/^chatcmpl-[a-z2-7]{24}$/),
    object: "chat.completion",
    created: expect.any(Number),
    model: "nano",
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: "Good day",
          refusal: null,
          reasoning_content: "Hmm.",
        },
        logprobs: null,
        finish_reason: "stop",
      },
    ],
    usage: {
      prompt_tokens,
      completion_tokens,
      total_tokens: prompt_tokens + completion_tokens,
      prompt_tokens_details: { cached_tokens: 0 },
      completion_tokens_details: { reasoning_tokens: tokenizer.encode("Hmm.\n</think>").length },
    },
    stop_sequence: null,
    token_sha: expect.stringMatching(/^[0-9a-f]{12}$/),
    timings: {
      prefill_ms: expect.any(Number),
      decode_ms: expect.any(Number),
      tokens_per_second: expect.any(Number),
      cache_miss_reason: "no_match",
    },
    speculative: expect.objectContaining({ drafted: 0, accepted: 0, by_drafter: {} }),
  });
});

test("a streamed reply: role, parts, finish with extras, and usage only when asked", async () => {
  const body = { messages: hello, chat_template_kwargs: { enable_thinking: false } };
  script.say("Good day");
  const [first, ...rest] = await eventsOf(scripted.app, chatPath, body);
  expect(first).toEqual({
    id: expect.stringMatching(/^chatcmpl-/),
    object: "chat.completion.chunk",
    created: expect.any(Number),
    model: "nano",
    choices: [{ index: 0, delta: { role: "assistant", content: "" }, finish_reason: null }],
  });
  const last = rest.at(-1)!;
  expect(last.choices).toEqual([{ index: 0, delta: {}, finish_reason: "stop" }]);
  expect(last).toMatchObject({ timings: {}, stop_sequence: null, token_sha: expect.any(String) });
  expect(joined(rest).content).toBe("Good day");
  for (const event of rest) expect(event).not.toHaveProperty("usage");
  expect(new Set(rest.map(({ id }) => id))).toEqual(new Set([first!.id]));

  script.say("Good day");
  const options = { stream_options: { include_usage: true } };
  const asked = await eventsOf(scripted.app, chatPath, { ...body, ...options });
  const usage = { completion_tokens: tokenizer.encode("Good day").length + 1 };
  expect(asked.at(-1)).toMatchObject({ choices: [], usage });
  for (const event of asked.slice(0, -1)) expect(event).not.toHaveProperty("usage");
});

test("headers of a stream keep proxies from holding it back", async () => {
  const { headers, body } = await post(random.app, chatPath, { messages: hello, stream: true });
  expect(headers.get("Content-Type")).toBe("text/event-stream; charset=utf-8");
  expect(headers.get("Cache-Control")).toBe("no-cache");
  expect(headers.get("X-Accel-Buffering")).toBe("no");
  await body!.cancel();
});

test("tool calls: named first, then their arguments; content null where there is none", async () => {
  const body = { messages: hello, tools: [weather], tool_choice: "auto" };
  const calls = `</think>\n\n${call("Paris")}\n${call("Oslo")}`;
  const called = ["Paris", "Oslo"].map((city) => ({
    name: "get_weather",
    arguments: JSON.stringify({ city }),
  }));
  script.say(calls);
  const { choices } = await replyTo(scripted.app, chatPath, body);
  expect(choices[0]).toMatchObject({
    message: {
      content: null,
      tool_calls: called.map((fn) => ({ type: "function", function: fn })),
    },
    finish_reason: "tool_calls",
  });
  for (const { id } of choices[0]!.message!.tool_calls!) expect(id).toMatch(/^call_[a-z2-7]{24}$/);

  script.say(calls);
  const events = await eventsOf(scripted.app, chatPath, body);
  expect(joined(events)).toEqual({
    content: "",
    reasoning: "",
    calls: called,
    finish: "tool_calls",
  });
  const deltas = events.flatMap((event) => event.choices[0]!.delta!.tool_calls ?? []);
  const named = deltas.filter(({ id }) => id !== undefined);
  const first = { type: "function", function: { name: "get_weather", arguments: "" } };
  expect(named).toEqual([0, 1].map((index) => ({ index, id: expect.any(String), ...first })));
  for (const delta of deltas) {
    if (delta.id === undefined) expect(Object.keys(delta)).toEqual(["index", "function"]);
  }
});

test("content beside a call is kept, whole and streamed", async () => {
  const body = { messages: hello, tools: [weather] };
  script.say(`</think>\n\nLet me look.\n${call("Paris")}`);
  const { choices } = await replyTo(scripted.app, chatPath, body);
  expect(choices[0]!.message!.content).toBe("Let me look.");
  script.say(`</think>\n\nLet me look.\n${call("Paris")}`);
  expect(joined(await eventsOf(scripted.app, chatPath, body)).content).toBe("Let me look.");
});

test("tool_choice none offers no tools", async () => {
  script.say(`</think>\n\n${call("Paris")}`);
  const body = { messages: hello, tools: [weather], tool_choice: "none" };
  const { choices, usage } = await replyTo(scripted.app, chatPath, body);
  expect(choices[0]).toMatchObject({ message: { content: call("Paris") }, finish_reason: "stop" });
  script.say("");
  const bare = await replyTo(scripted.app, chatPath, { messages: hello });
  expect(usage!.prompt_tokens).toBe(bare.usage!.prompt_tokens);
});

test("tools are printed into the prompt as they came, nulls aside", async () => {
  const { name, parameters } = weather.function;
  const odd = { function: { parameters, strict: true, description: null, name }, type: "function" };
  const seen = scripted.engine.tokenize(
    JSON.stringify({ ...odd, function: { parameters, strict: true, name } }),
  );
  script.say("");
  const withTool = await replyTo(scripted.app, chatPath, { messages: hello, tools: [odd] });
  script.say("");
  const without = await replyTo(scripted.app, chatPath, { messages: hello });
  expect(withTool.usage!.prompt_tokens).toBeGreaterThan(without.usage!.prompt_tokens + seen.length);
});

test.each([["day"], [["zzz", "day", "d to"]]])("stop %j", async (stop) => {
  const body = { messages: hello, stop, chat_template_kwargs: { enable_thinking: false } };
  script.say("Good day to you");
  const reply = await replyTo(scripted.app, chatPath, body);
  expect(reply.choices[0]).toMatchObject({ message: { content: "Good " }, finish_reason: "stop" });
  expect(reply.stop_sequence).toBe(Array.isArray(stop) ? "day" : stop);
  script.say("Good day to you");
  const events = await eventsOf(scripted.app, chatPath, body);
  expect(joined(events).content).toBe("Good ");
  expect(events.at(-1)!.stop_sequence).toBe("day");
});

test("the parts of a stream add up to the whole reply, at every max_tokens", async () => {
  for (let max_tokens = 1; max_tokens <= 40; max_tokens++) {
    const body = { messages: hello, max_tokens, seed: 7, top_k: 50, top_p: 1 };
    const [whole, events] = await Promise.all([
      replyTo(random.app, chatPath, body),
      eventsOf(random.app, chatPath, body),
    ]);
    const { content, reasoning_content = "" } = whole.choices[0]!.message!;
    expect(joined(events)).toEqual({
      content,
      reasoning: reasoning_content,
      calls: [],
      finish: "length",
    });
    expect(events.at(-1)!.token_sha).toBe(whole.token_sha);
    expect(whole.usage!.completion_tokens).toBe(max_tokens);
  }
});

test("a character cut by max_tokens is the same in both", async () => {
  const ids = tokenizer.encode("a\u{1F980}b");
  expect(ids.length).toBeGreaterThan(3);
  for (let max_tokens = 1; max_tokens <= ids.length; max_tokens++) {
    const body = { messages: hello, max_tokens, chat_template_kwargs: { enable_thinking: false } };
    script.say(ids);
    const { message } = (await replyTo(scripted.app, chatPath, body)).choices[0]!;
    script.say(ids);
    expect(joined(await eventsOf(scripted.app, chatPath, body)).content).toBe(message!.content);
  }
});

test("null is as good as absent in every optional field", async () => {
  const nulls = Object.fromEntries(
    (
      "model max_tokens temperature top_p top_k min_p seed stop ignore_eos stream stream_options " +
      "tools tool_choice chat_template_kwargs draft n logprobs top_logprobs logit_bias " +
      "response_format presence_penalty frequency_penalty repetition_penalty modalities parallel_tool_calls user " +
      "reasoning_effort guided_json best_of echo suffix"
    )
      .split(" ")
      .map((name) => [name, null]),
  );
  const message = { role: "user", content: "Hello", name: null, tool_calls: null, refusal: null };
  const body = { max_completion_tokens: 5, messages: hello };
  const plain = await replyTo(random.app, chatPath, body);
  const reply = await replyTo(random.app, chatPath, { ...nulls, ...body, messages: [message] });
  expect(reply.token_sha).toBe(plain.token_sha);
  const kwargs = { chat_template_kwargs: { enable_thinking: null } };
  expect((await replyTo(random.app, chatPath, { ...body, ...kwargs })).token_sha).toBe(
    plain.token_sha,
  );
});

test("values that ask for nothing and unknown fields change nothing", async () => {
  const body = { max_tokens: 5, messages: hello };
  const plain = await replyTo(random.app, chatPath, body);
  const idle = {
    n: 1,
    logprobs: false,
    logit_bias: {},
    response_format: { type: "text" },
    presence_penalty: 0,
    frequency_penalty: 0.0,
    repetition_penalty: 1,
    modalities: ["text"],
    parallel_tool_calls: true,
    tool_choice: "auto",
    draft: false,
    metadata: { a: "b" },
    store: true,
    made_up: [1],
  };
  expect((await replyTo(random.app, chatPath, { ...idle, ...body })).token_sha).toBe(
    plain.token_sha,
  );
});

test("ignore_eos goes on to max_tokens", async () => {
  script.say("");
  const body = { messages: hello, max_tokens: 5, ignore_eos: true };
  const { choices, usage } = await replyTo(scripted.app, chatPath, body);
  expect(choices[0]!.finish_reason).toBe("length");
  expect(usage!.completion_tokens).toBe(5);
});
