import { afterAll, expect, test } from "vitest";
import { BackendError } from "../errors.ts";
import { endServers, idle, Script, testServer, tokenizer } from "./engine.cases.ts";
import { post, weatherCall } from "./http.cases.ts";
import {
  finalOf,
  lasting,
  noThinking,
  respond,
  responseEvents,
  responsesPath,
  type TestEvent,
  weather,
} from "./responses.cases.ts";
import type { ResponseItem } from "./responses-items.ts";

const random = testServer();
const script = new Script();
const scripted = testServer({ logits: script.logits });
afterAll(() => endServers(random, scripted));

/** The same reply, whole and streamed: what lasts of the response, and the events. */
async function both(
  body: object,
  say: string | readonly number[],
): Promise<{ output: readonly ResponseItem[]; response: object; events: TestEvent[] }> {
  script.say(say);
  const whole = await respond(scripted.app, body);
  script.say(say);
  const events = await responseEvents(scripted.app, body);
  const response = lasting(whole);
  expect(lasting(finalOf(events))).toEqual(response);
  return { output: whole.output, response, events };
}

test("a whole response", async () => {
  const say = "Hmm.\n</think>\n\nGood day";
  script.say(say);
  const clock = { nowMs: () => 0, unixSeconds: () => 1234 };
  const { app, engine } = testServer({ logits: script.logits, app: { clock } });
  const body = { model: "whatever", input: "Hello", metadata: { a: "b" } };
  const input_tokens = tokenizer.encode(
    "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n<think>\n",
  ).length;
  const output_tokens = tokenizer.encode(say).length + 1;
  expect(await respond(app, body)).toEqual({
    id: expect.stringMatching(/^resp_[a-z2-7]{24}$/),
    object: "response",
    created_at: 1234,
    completed_at: 1234,
    status: "completed",
    background: false,
    error: null,
    incomplete_details: null,
    instructions: null,
    max_output_tokens: null,
    max_tool_calls: null,
    metadata: { a: "b" },
    model: "nano",
    output: [
      {
        type: "reasoning",
        id: expect.stringMatching(/^rs_[a-z2-7]{24}$/),
        status: "completed",
        summary: [],
        content: [{ type: "reasoning_text", text: "Hmm." }],
      },
      {
        type: "message",
        id: expect.stringMatching(/^msg_[a-z2-7]{24}$/),
        status: "completed",
        role: "assistant",
        content: [{ type: "output_text", text: "Good day", annotations: [], logprobs: [] }],
      },
    ],
    parallel_tool_calls: true,
    previous_response_id: null,
    prompt_cache_key: null,
    reasoning: { effort: null, summary: null },
    safety_identifier: null,
    service_tier: "default",
    store: true,
    temperature: 0.7,
    text: { format: { type: "text" } },
    tool_choice: "auto",
    tools: [],
    top_logprobs: 0,
    top_p: 0.95,
    truncation: "disabled",
    usage: {
      input_tokens,
      input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
      output_tokens,
      output_tokens_details: { reasoning_tokens: tokenizer.encode("Hmm.\n</think>").length },
      total_tokens: input_tokens + output_tokens,
    },
    stop_sequence: null,
    token_sha: expect.stringMatching(/^[0-9a-f]{12}$/),
    timings: expect.objectContaining({ cache_miss_reason: "no_match" }),
    speculative: expect.objectContaining({ drafted: 0 }),
  });
  await engine[Symbol.asyncDispose]();
});

test("the events of reasoning and text", async () => {
  const { events, response } = await both({ input: "Hello" }, "Hmm.\n</think>\n\nHi");
  const [reasoning, message] = finalOf(events).output as [ResponseItem, ResponseItem];
  const place = (index: number, { id: item_id }: ResponseItem) => ({
    item_id,
    output_index: index,
    content_index: 0,
  });
  const part = { type: "output_text", text: "", annotations: [], logprobs: [] };
  const begun = { status: "in_progress", content: [] };
  const deltas = tokenizer.encode("Hmm.").map((id) => tokenizer.decode([id]));
  const expected = [
    { type: "response.output_item.added", output_index: 0, item: { ...reasoning, ...begun } },
    {
      type: "response.content_part.added",
      ...place(0, reasoning),
      part: { type: "reasoning_text", text: "" },
    },
    ...deltas.map((delta) => ({
      type: "response.reasoning_text.delta",
      ...place(0, reasoning),
      delta,
    })),
    { type: "response.reasoning_text.done", ...place(0, reasoning), text: "Hmm." },
    {
      type: "response.content_part.done",
      ...place(0, reasoning),
      part: { type: "reasoning_text", text: "Hmm." },
    },
    { type: "response.output_item.done", output_index: 0, item: reasoning },
    { type: "response.output_item.added", output_index: 1, item: { ...message, ...begun } },
    { type: "response.content_part.added", ...place(1, message), part },
    { type: "response.output_text.delta", ...place(1, message), delta: "Hi", logprobs: [] },
    { type: "response.output_text.done", ...place(1, message), text: "Hi", logprobs: [] },
    { type: "response.content_part.done", ...place(1, message), part: { ...part, text: "Hi" } },
    { type: "response.output_item.done", output_index: 1, item: message },
  ];
  const numbered = expected.map((event, index) => ({ ...event, sequence_number: index + 2 }));
  expect(events.slice(2, -1)).toEqual(numbered);
  expect(events.at(-1)!.type).toBe("response.completed");
  for (const { response: opening } of events.slice(0, 2)) {
    expect(opening).toMatchObject({ id: finalOf(events).id, status: "in_progress", output: [] });
    expect(opening).not.toHaveProperty("usage");
  }
  expect(response).toMatchObject({ status: "completed", incomplete_details: null });
});

test("text and two calls, in the order in which they were written", async () => {
  const body = { input: "Hello", tools: [weather] };
  const say = `Hmm.\n</think>\n\nLet me look.\n${weatherCall("Paris")}\n${weatherCall("Oslo")}`;
  const { output, events } = await both(body, say);
  const call = (city: string) => ({
    type: "function_call",
    id: expect.stringMatching(/^fc_[a-z2-7]{24}$/),
    status: "completed",
    call_id: expect.stringMatching(/^call_[a-z2-7]{24}$/),
    name: "get_weather",
    arguments: JSON.stringify({ city }),
  });
  expect(output).toEqual([
    expect.objectContaining({ type: "reasoning" }),
    expect.objectContaining({ content: [expect.objectContaining({ text: "Let me look." })] }),
    call("Paris"),
    call("Oslo"),
  ]);
  const added = events.filter(({ type }) => type === "response.output_item.added");
  expect(added[2]!["item"]).toEqual({ ...call("Paris"), status: "in_progress", arguments: "" });
  const done = events.filter(({ type }) => type === "response.function_call_arguments.done");
  expect(done.map(({ name, arguments: written }) => [name, written])).toEqual([
    ["get_weather", '{"city":"Paris"}'],
    ["get_weather", '{"city":"Oslo"}'],
  ]);
});

test("text behind a call is an item behind it", async () => {
  const body = { input: "Hello", tools: [weather], ...noThinking };
  const { output } = await both(body, `${weatherCall("Paris")}\nDone.`);
  expect(output.map(({ type }) => type)).toEqual(["function_call", "message"]);
});

test("parallel_tool_calls false ends the response behind its first call", async () => {
  const body = { input: "Hello", tools: [weather], parallel_tool_calls: false, ...noThinking };
  const { output, response } = await both(body, weatherCall("Paris") + weatherCall("Oslo"));
  expect(output).toHaveLength(1);
  expect(response).toMatchObject({ status: "completed" });
});

test("cut by max_output_tokens in its reasoning, in its text and in a call", async () => {
  const say = `Hmm.\n</think>\n\nLet me look.\n${weatherCall("Paris")}`;
  const last = tokenizer.encode(say).length;
  const seen = new Set<string>();
  for (let max_output_tokens = 1; max_output_tokens <= last; max_output_tokens++) {
    const body = { input: "Hello", tools: [weather], max_output_tokens };
    const { output, response, events } = await both(body, say);
    expect(response).toMatchObject({
      status: "incomplete",
      incomplete_details: { reason: "max_output_tokens" },
      max_output_tokens,
    });
    expect(response).not.toHaveProperty("completed_at");
    expect(events.at(-1)!.type).toBe("response.incomplete");
    for (const { status } of output.slice(0, -1)) expect(status).toBe("completed");
    const { type, status } = output.at(-1)!;
    seen.add(`${type} ${status}`);
  }
  expect([...seen]).toEqual([
    "reasoning incomplete",
    "message incomplete",
    "function_call incomplete",
    "function_call completed",
  ]);
});

test("the parts of a stream add up to the whole response, at every length", async () => {
  for (let max_output_tokens = 1; max_output_tokens <= 24; max_output_tokens++) {
    const body = { input: "Hello", max_output_tokens, seed: 7, top_k: 50, top_p: 1 };
    const [whole, events] = await Promise.all([
      respond(random.app, body),
      responseEvents(random.app, body),
    ]);
    expect(lasting(finalOf(events))).toEqual(lasting(whole));
    expect(whole.usage.output_tokens).toBe(max_output_tokens);
  }
});

test("a reply of nothing is an empty message", async () => {
  const empty = {
    type: "message",
    id: expect.any(String),
    status: "completed",
    role: "assistant",
    content: [{ type: "output_text", text: "", annotations: [], logprobs: [] }],
  };
  for (const [say, fields] of [
    ["", noThinking],
    ["</think>\n\n", {}],
  ] as const) {
    const { output, events } = await both({ input: "Hello", ...fields }, say);
    expect(output).toEqual([empty]);
    expect(events.map(({ type }) => type)).not.toContain("response.output_text.delta");
  }
  const reasoned = await both({ input: "Hello" }, "Hmm.");
  expect(reasoned.output.map(({ type }) => type)).toEqual(["reasoning"]);
});

test("a stop string ends a response", async () => {
  const body = { input: "Hello", stop: "day", ...noThinking };
  const { output, response } = await both(body, "Good day to you");
  expect(output).toMatchObject([{ status: "completed", content: [{ text: "Good " }] }]);
  expect(response).toMatchObject({ status: "completed", stop_sequence: "day" });
});

test("a text comes with its tokens' chances, and with nobody else's", async () => {
  const include = ["message.output_text.logprobs"];
  const body = { input: "Hello", tools: [weather], include, top_logprobs: 1 };
  const say = `Hmm.\n</think>\n\nGood day \u{1F980} it\n${weatherCall("Paris")}`;
  const { output, events } = await both(body, say);
  const [, message] = output as [unknown, { content: [{ logprobs: { token: string }[] }] }];
  const ids = tokenizer.encode("Good day \u{1F980} it");
  expect(message.content[0].logprobs).toEqual(
    ids.map((id) => {
      const token = { token: tokenizer.decode([id]), bytes: [...tokenizer.tokenBytes(id)] };
      const likely = { ...token, logprob: expect.closeTo(0, 5) };
      return { ...likely, top_logprobs: [likely] };
    }),
  );
  const deltas = events.filter(({ type }) => type === "response.output_text.delta");
  expect(deltas.flatMap(({ logprobs }) => logprobs)).toEqual(message.content[0].logprobs);
  expect(JSON.stringify(output[0])).not.toContain("logprob");
});

test("a failure before the first token is an error, whole and streamed", async () => {
  const fault = () => {
    throw new BackendError("it broke");
  };
  const server = testServer({ fault });
  for (const stream of [false, true]) {
    const reply = await post(server.app, responsesPath, { input: "Hello", stream });
    expect(reply.status).toBe(500);
    expect(await reply.json()).toMatchObject({ error: { code: "backend_error" } });
  }
  expect(server.reported).toHaveLength(2);
  await server.engine[Symbol.asyncDispose]();
});

test("a failure inside a stream: an error event, and a failed response, not stored", async () => {
  let passes = 0;
  const fault = () => {
    passes++;
    if (passes === 6) throw new BackendError("it broke");
  };
  const server = testServer({ fault, logits: script.logits });
  script.say("one two three four five six seven eight");
  const events = await responseEvents(server.app, { input: "Hello", ...noThinking });
  expect(events.slice(-2)).toMatchObject([
    { type: "error", code: "backend_error", message: "it broke", param: null },
    {
      type: "response.failed",
      response: {
        status: "failed",
        error: { code: "server_error", message: "it broke" },
        output: [{ type: "message", status: "incomplete" }],
      },
    },
  ]);
  const stored = await server.app.request(`${responsesPath}/${finalOf(events).id}`);
  expect(stored.status).toBe(404);
  expect(server.reported).toHaveLength(1);
  await server.engine[Symbol.asyncDispose]();
});

test("a client that hangs up frees the slot, and nothing is stored", async () => {
  const body = { input: "Hello", max_output_tokens: 900, ignore_eos: true };
  const { app } = random;
  const stream = await post(app, responsesPath, { ...body, stream: true });
  const reader = stream.body!.getReader();
  const { value } = await reader.read();
  await reader.cancel();
  const [, id] = /"id":"(resp_[a-z2-7]{24})"/.exec(new TextDecoder().decode(value))!;
  await idle(random);
  expect((await app.request(`${responsesPath}/${id}`)).status).toBe(404);

  const hangUp = new AbortController();
  const sent = post(app, responsesPath, body, { signal: hangUp.signal });
  while (random.engine.counts.running === 0) await Promise.resolve();
  hangUp.abort();
  expect((await sent).status).toBe(503);
  await idle(random);
});
