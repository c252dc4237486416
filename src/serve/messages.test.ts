import { afterAll, describe, expect, test } from "vitest";
import { BackendError } from "../errors.ts";
import { endServers, idle, Script, testServer, tokenizer } from "./engine.cases.ts";
import { hello, post, weatherCall } from "./http.cases.ts";
import {
  answerTo,
  type Block,
  countPath,
  joinedMessage,
  messageEvents,
  messageOf,
  messagesPath,
  weather,
} from "./messages.cases.ts";

const random = testServer();
const script = new Script();
const scripted = testServer({ logits: script.logits });
afterAll(() => endServers(random, scripted));

/** A reply to the same body, whole and streamed, which must say the same. */
async function both(
  say: string,
  body: object,
): Promise<Omit<Awaited<ReturnType<typeof messageOf>>, "id">> {
  script.say(say);
  const { id, ...whole } = await messageOf(scripted.app, body);
  expect(id).toMatch(/^msg_[a-z2-7]{24}$/);
  script.say(say);
  const streamed = joinedMessage(await messageEvents(scripted.app, body));
  const unnamed = (blocks: readonly Block[]) =>
    blocks.map((block) => (block.type === "tool_use" ? { ...block, id: "" } : block));
  expect({ ...streamed, content: unnamed(streamed.content), usage: 0 }).toEqual({
    content: unnamed(whole.content),
    stop_reason: whole.stop_reason,
    stop_sequence: whole.stop_sequence,
    token_sha: whole.token_sha,
    usage: 0,
  });
  return whole;
}

test("a whole message", async () => {
  const say = "Hmm.\n</think>\n\nGood day";
  script.say(say);
  const reply = await messageOf(scripted.app, { model: "whatever", messages: hello });
  const prompt = "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n<think>\n";
  expect(reply).toEqual({
    id: expect.stringMatching(/^msg_[a-z2-7]{24}$/),
    type: "message",
    role: "assistant",
    model: "nano",
    content: [
      { type: "thinking", thinking: "Hmm.", signature: "" },
      { type: "text", text: "Good day" },
    ],
    stop_reason: "end_turn",
    stop_sequence: null,
    usage: {
      input_tokens: tokenizer.encode(prompt).length,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: 0,
      output_tokens: tokenizer.encode(say).length + 1,
      output_tokens_details: { thinking_tokens: tokenizer.encode("Hmm.\n</think>").length },
    },
    token_sha: expect.stringMatching(/^[0-9a-f]{12}$/),
    timings: expect.objectContaining({ prefill_ms: expect.any(Number) }),
    speculative: expect.objectContaining({ drafted: 0 }),
  });
});

test("the events of a message, one by one", async () => {
  script.say("Hmm.\n</think>\n\nGood");
  const events = await messageEvents(scripted.app, { messages: hello });
  const told = events.filter(({ delta }) => delta?.type !== "text_delta");
  const [start, ...others] = told.filter(({ delta }) => delta?.type !== "thinking_delta");
  expect(start).toEqual({
    type: "message_start",
    message: {
      id: expect.stringMatching(/^msg_/),
      type: "message",
      role: "assistant",
      model: "nano",
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { input_tokens: expect.any(Number), output_tokens: 0 },
    },
  });
  expect(others).toEqual([
    {
      type: "content_block_start",
      index: 0,
      content_block: { type: "thinking", thinking: "", signature: "" },
    },
    {
      type: "content_block_delta",
      index: 0,
      delta: { type: "signature_delta", signature: "" },
    },
    { type: "content_block_stop", index: 0 },
    { type: "content_block_start", index: 1, content_block: { type: "text", text: "" } },
    { type: "content_block_stop", index: 1 },
    {
      type: "message_delta",
      delta: { stop_reason: "end_turn", stop_sequence: null },
      usage: {
        input_tokens: expect.any(Number),
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: expect.any(Number),
        output_tokens: expect.any(Number),
        output_tokens_details: { thinking_tokens: expect.any(Number) },
      },
      stop_sequence: null,
      token_sha: expect.any(String),
      timings: expect.any(Object),
      speculative: expect.any(Object),
    },
    { type: "message_stop" },
  ]);
});

test("calls, and text before, between and behind them, in the order of the model", async () => {
  const say = `Hm.\n</think>\n\nOne.\n${weatherCall("Oslo")}\nTwo.\n${weatherCall("Rome")}\nThree.`;
  const { content, stop_reason } = await both(say, { messages: hello, tools: [weather] });
  const call = (city: string) => ({
    type: "tool_use",
    id: expect.stringMatching(/^toolu_[a-z2-7]{24}$/),
    name: "get_weather",
    input: { city },
  });
  expect(content).toEqual([
    { type: "thinking", thinking: "Hm.", signature: "" },
    { type: "text", text: "One." },
    call("Oslo"),
    { type: "text", text: "\nTwo." },
    call("Rome"),
    { type: "text", text: "\nThree." },
  ]);
  expect(stop_reason).toBe("tool_use");
});

test("two calls and nothing else; one where more are forbidden", async () => {
  const say = `</think>\n\n${weatherCall("Oslo")}\n${weatherCall("Rome")}`;
  const body = { messages: hello, tools: [weather] };
  const names = ({ content }: { content: readonly Block[] }) => content.map(({ input }) => input);
  expect(names(await both(say, body))).toEqual([{ city: "Oslo" }, { city: "Rome" }]);
  const single = { type: "auto", disable_parallel_tool_use: true };
  const only = await both(say, { ...body, tool_choice: single });
  expect(names(only)).toEqual([{ city: "Oslo" }]);
  expect(only.stop_reason).toBe("tool_use");
});

test("input has the types of the schema, and none is an empty object", async () => {
  const typed =
    "</think>\n\n<tool_call>\n<function=get_weather>\n<parameter=city>\n7\n</parameter>\n" +
    "<parameter=days>\n7\n</parameter>\n</function>\n</tool_call>";
  const bare = "</think>\n\n<tool_call>\n<function=get_weather>\n</function>\n</tool_call>";
  const body = { messages: hello, tools: [weather] };
  expect((await both(typed, body)).content[0]!.input).toEqual({ city: "7", days: 7 });
  expect((await both(bare, body)).content[0]!.input).toEqual({});
});

test("cut anywhere, no call is in a whole message that isn't complete", async () => {
  const say = `</think>\n\nA\n${weatherCall("Oslo")}\n${weatherCall("Rome")}`;
  const ids = tokenizer.encode(say);
  const body = { messages: hello, tools: [weather] };
  const inputs = new Set<string>();
  for (let max_tokens = 1; max_tokens <= ids.length; max_tokens++) {
    script.say(ids);
    const whole = await messageOf(scripted.app, { ...body, max_tokens });
    script.say(ids);
    const events = await messageEvents(scripted.app, { ...body, max_tokens });
    const streamed = joinedMessage(events);
    expect(whole.stop_reason).toBe("max_tokens");
    expect(streamed.stop_reason).toBe("max_tokens");
    const last = streamed.content.at(-1);
    const cut = last?.type === "tool_use" && typeof last.input === "string";
    const kept = cut ? streamed.content.slice(0, -1) : streamed.content;
    const plain = ({ id: _, ...block }: Block) => block;
    expect(whole.content.map(plain)).toEqual(kept.map(plain));
    for (const { input } of whole.content) if (input) inputs.add(JSON.stringify(input));
    if (cut) expect('{"city":"Rome"}{"city":"Oslo"}').toContain(last.input as string);
  }
  expect(inputs).toEqual(new Set(['{"city":"Oslo"}', '{"city":"Rome"}']));
});

test("stop sequences, in the text and inside a call", async () => {
  const body = { messages: hello, tools: [weather], stop_sequences: ["zzz", "day"] };
  const stopped = { stop_reason: "stop_sequence", stop_sequence: "day" };
  const said = await both("</think>\n\nGood day", body);
  expect(said).toMatchObject({ ...stopped, content: [{ type: "text", text: "Good " }] });
  script.say(`</think>\n\n${weatherCall("Friday")}`);
  expect(await messageOf(scripted.app, body)).toMatchObject({ ...stopped, content: [] });
});

test("an empty reply, and one that ends inside a call", async () => {
  const ended = { stop_reason: "end_turn", content: [] };
  const body = { messages: hello, tools: [weather] };
  expect(await both("", body)).toMatchObject(ended);
  expect(await both("</think>\n\n", body)).toMatchObject(ended);
  script.say(`</think>\n\n${weatherCall("Oslo").slice(0, 60)}`);
  expect(await messageOf(scripted.app, body)).toMatchObject(ended);
});

test("random replies are the same whole and streamed, at every max_tokens", async () => {
  for (let max_tokens = 1; max_tokens <= 30; max_tokens++) {
    const body = { messages: hello, max_tokens, seed: 7, top_k: 50, top_p: 1 };
    const [{ content, ...whole }, events] = await Promise.all([
      messageOf(random.app, body),
      messageEvents(random.app, body),
    ]);
    const streamed = joinedMessage(events);
    expect(streamed.content).toEqual(content);
    expect(streamed.token_sha).toBe(whole.token_sha);
    expect(whole).toMatchObject({
      stop_reason: "max_tokens",
      usage: { output_tokens: max_tokens },
    });
  }
});

test("thinking: off, omitted, and as the model does", async () => {
  const off = { messages: hello, thinking: { type: "disabled" } };
  expect((await both("Good day", off)).content).toEqual([{ type: "text", text: "Good day" }]);
  const thinking = { type: "adaptive", display: "omitted" };
  const { content } = await both("Hm.\n</think>\n\nYes", { messages: hello, thinking });
  expect(content).toEqual([
    { type: "thinking", thinking: "", signature: "" },
    { type: "text", text: "Yes" },
  ]);
});

describe("usage", () => {
  const system = "You are terse. ".repeat(20);

  test("what a second turn finds in the cache isn't counted as input", async () => {
    const { app, engine } = scripted;
    script.say("</think>\n\nParis");
    const first = await messageOf(app, { system, messages: hello });
    const total = ({ usage }: typeof first) => usage.input_tokens + usage.cache_read_input_tokens;
    expect(first.usage.cache_read_input_tokens).toBe(0);
    await engine.settled();
    const said = { role: "assistant", content: first.content };
    const messages = [...hello, said, { role: "user", content: "And then?" }];
    script.say("</think>\n\nRome");
    const second = await messageOf(app, { system, messages });
    const { input_tokens } = await answerTo<{ input_tokens: number }>(app, countPath, {
      system,
      messages,
    });
    expect(total(second)).toBe(input_tokens);
    // All of the first turn, and of the reply what next turns repeat.
    expect(second.usage.cache_read_input_tokens).toBeGreaterThanOrEqual(total(first));
    script.say("</think>\n\nRome");
    const events = await messageEvents(app, { system, messages });
    expect(events[0]!.message!.usage.input_tokens).toBe(input_tokens);
    const { usage } = joinedMessage(events);
    expect(usage.input_tokens + usage.cache_read_input_tokens).toBe(input_tokens);
    expect(usage.cache_read_input_tokens).toBe(input_tokens - 1);
  });

  test.each([
    ["a text", { messages: hello }],
    ["system and tools", { system, messages: hello, tools: [weather] }],
    [
      "tools that mustn't be called",
      { messages: hello, tools: [weather], tool_choice: { type: "none" } },
    ],
    ["no thinking", { messages: hello, thinking: { type: "disabled" } }],
    ["effort", { messages: hello, output_config: { effort: "low" } }],
    [
      "what only a reply has",
      { messages: hello, stop_sequences: ["a"], temperature: 0, max_tokens: 3 },
    ],
  ])("count_tokens counts what a reply reports: %s", async (_, body) => {
    script.say("</think>\n\nYes");
    const { usage } = await messageOf(scripted.app, body);
    for (const path of [countPath, "/messages/count_tokens"]) {
      expect(await answerTo(scripted.app, path, body)).toEqual({
        input_tokens: usage.input_tokens + usage.cache_read_input_tokens,
      });
    }
  });
});

test("the path without a version", async () => {
  script.say("</think>\n\nYes");
  const body = { messages: hello, max_tokens: 50 };
  const { content } = await answerTo<{ content: unknown }>(scripted.app, "/messages", body);
  expect(content).toEqual([{ type: "text", text: "Yes" }]);
});

test("a failure inside a stream is Anthropic's error event, and the last", async () => {
  const fault = (pass: number) => {
    if (pass === 4) throw new BackendError("it broke");
  };
  const server = testServer({ fault });
  const events = await messageEvents(server.app, { messages: hello });
  expect(events.at(-1)).toEqual({
    type: "error",
    error: { type: "api_error", message: "it broke", details: { error_code: "backend_error" } },
  });
  expect(server.reported).toHaveLength(1);
  await idle(server);
});

test.each([true, false])("a client that hangs up frees its slot (stream %s)", async (stream) => {
  const server = testServer({ slots: 1 });
  const hangUp = new AbortController();
  const body = { messages: hello, max_tokens: 4000, stream };
  const request = post(server.app, messagesPath, body, { signal: hangUp.signal });
  while (server.engine.counts.running < 1) await new Promise(setImmediate);
  hangUp.abort();
  await request;
  await idle(server);
});
