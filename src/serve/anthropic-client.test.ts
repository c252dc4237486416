import type { AddressInfo } from "node:net";
import Anthropic, {
  APIError,
  AuthenticationError,
  BadRequestError,
  InternalServerError,
  NotFoundError,
  RateLimitError,
} from "@anthropic-ai/sdk";
import { serve } from "@hono/node-server";
import { afterAll, expect, test } from "vitest";
import { BackendError } from "../errors.ts";
import { idle, Script, type TestServer, testServer, tokenizer } from "./engine.cases.ts";
import { weatherCall } from "./http.cases.ts";
import { ApiKeys } from "./keys.ts";
import { weather } from "./messages.cases.ts";

const script = new Script();
const stopAll: (() => Promise<void>)[] = [];
const random = await listen(testServer());
const scripted = await listen(testServer({ logits: script.logits }));
afterAll(async () => {
  for (const stop of stopAll) await stop();
});

interface Listening {
  readonly server: TestServer;
  readonly client: Anthropic;
}

/** Serves over a real socket, so that hang-ups are real ones. */
async function listen(server: TestServer, apiKey = "none"): Promise<Listening> {
  const { promise, resolve } = Promise.withResolvers<AddressInfo>();
  const http = serve({ fetch: server.app.fetch, port: 0, hostname: "127.0.0.1" }, resolve);
  const { port } = await promise;
  const baseURL = `http://127.0.0.1:${port}`;
  const client = new Anthropic({ baseURL, apiKey, maxRetries: 0 });
  stopAll.push(async () => {
    await server.engine[Symbol.asyncDispose]();
    expect(server.backend.openSlots.size).toBe(0);
    await new Promise((closed) => http.close(closed));
  });
  return { server, client };
}

const messages: Anthropic.MessageParam[] = [{ role: "user", content: "Hello" }];
const body = { model: "nano", max_tokens: 200, messages };

test("a message, whole and streamed", async () => {
  const say = "Hmm.\n</think>\n\nGood day \u{1F980}";
  const content = [
    { type: "thinking", thinking: "Hmm.", signature: "" },
    { type: "text", text: "Good day \u{1F980}" },
  ];
  script.say(say);
  const whole = await scripted.client.messages.create(body);
  expect(whole).toMatchObject({ content, stop_reason: "end_turn", stop_sequence: null });
  expect(whole.usage.output_tokens).toBe(tokenizer.encode(say).length + 1);
  expect(whole._request_id).toMatch(/^req_/);

  script.say(say);
  const stream = scripted.client.messages.stream(body);
  const said: string[] = [];
  const thought: string[] = [];
  stream.on("text", (delta) => said.push(delta));
  stream.on("thinking", (delta) => thought.push(delta));
  const final = await stream.finalMessage();
  expect(said.join("")).toBe("Good day \u{1F980}");
  expect(thought.join("")).toBe("Hmm.");
  expect(final).toMatchObject({ content, stop_reason: "end_turn", stop_sequence: null });
  const { input_tokens } = whole.usage;
  // Next turns part from this prompt at its last token, the newline behind <think>.
  const cached = { input_tokens: 1, cache_read_input_tokens: input_tokens - 1 };
  expect(final.usage).toMatchObject({ ...cached, output_tokens: whole.usage.output_tokens });
});

test("raw events", async () => {
  script.say("</think>\n\nYes");
  const types: string[] = [];
  for await (const event of await scripted.client.messages.create({ ...body, stream: true })) {
    types.push(event.type);
  }
  expect([...new Set(types)]).toEqual([
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
  ]);
});

test("tools: two calls, their results, and a second turn", async () => {
  const { messages: api } = scripted.client;
  const tools = [weather as unknown as Anthropic.Tool];
  script.say(`Look.\n</think>\n\nWait.\n${weatherCall("Oslo")}\n${weatherCall("Rome")}`);
  const first = await api.stream({ ...body, tools }).finalMessage();
  expect(first.stop_reason).toBe("tool_use");
  const calls = first.content.filter((block) => block.type === "tool_use");
  expect(calls.map(({ name, input }) => [name, input])).toEqual([
    ["get_weather", { city: "Oslo" }],
    ["get_weather", { city: "Rome" }],
  ]);
  const results = calls.map(({ id }) => ({
    type: "tool_result" as const,
    tool_use_id: id,
    content: [{ type: "text" as const, text: "rain" }],
  }));
  const turns: Anthropic.MessageParam[] = [
    ...messages,
    { role: "assistant", content: first.content },
    { role: "user", content: results },
  ];
  const counted = await api.countTokens({ model: "nano", messages: turns, tools });
  script.say("</think>\n\nRain.");
  const second = await api.create({ ...body, messages: turns, tools });
  expect(second.content).toEqual([{ type: "text", text: "Rain." }]);
  const { input_tokens, cache_read_input_tokens } = second.usage;
  expect(input_tokens + cache_read_input_tokens!).toBe(counted.input_tokens);
  expect(cache_read_input_tokens).toBeGreaterThan(first.usage.input_tokens);
});

test("stop sequences and max_tokens", async () => {
  script.say("</think>\n\none two three");
  const stop_sequences = ["three"];
  const stopped = await scripted.client.messages.create({ ...body, stop_sequences });
  expect(stopped).toMatchObject({
    content: [{ type: "text", text: "one two " }],
    stop_reason: "stop_sequence",
    stop_sequence: "three",
  });
  const cut = await random.client.messages.create({ ...body, max_tokens: 3 });
  expect(cut).toMatchObject({ stop_reason: "max_tokens", usage: { output_tokens: 3 } });
});

test("errors are the client's own exceptions", async () => {
  const { client } = random;
  const thrown = async (request: Promise<unknown>) =>
    await request.then(
      () => null,
      (error: unknown) => error,
    );
  const tooLong = await thrown(client.messages.create({ ...body, max_tokens: 5000 }));
  expect(tooLong).toBeInstanceOf(BadRequestError);
  expect(tooLong).toMatchObject({
    status: 400,
    type: "invalid_request_error",
    errorCode: "context_length_exceeded",
    apiMessage: expect.stringContaining("+ 5000 > 4096, decrease input length"),
  });
  const none = await thrown(client.messages.stream({ ...body, messages: [] }).finalMessage());
  expect(none).toBeInstanceOf(BadRequestError);
  const unknown = await thrown(client.messages.batches.list().then());
  expect(unknown).toBeInstanceOf(NotFoundError);
  expect(unknown).toMatchObject({ type: "not_found_error" });
});

test("keys", async () => {
  const keys = new ApiKeys([{ label: "tests", key: "secret" }]);
  const known = await listen(testServer({ app: { keys } }), "secret");
  expect(await known.client.messages.create({ ...body, max_tokens: 1 })).toBeTruthy();
  const unknown = await listen(testServer({ app: { keys } }), "guess");
  const { messages: api } = unknown.client;
  for (const refused of [api.create(body), api.countTokens({ model: "nano", messages })]) {
    const error = await refused.then(null, (thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(AuthenticationError);
    expect(error).toMatchObject({ type: "authentication_error" });
  }
});

test("a full queue is a rate limit, and a broken device the server's failure", async () => {
  const { server, client } = await listen(testServer({ slots: 1, parts: { queueMax: 1 } }));
  const long = { ...body, max_tokens: 4000, stream: true } as const;
  const running = await client.messages.create(long);
  const waiting = client.messages.create(long);
  while (server.engine.counts.waiting < 1) await new Promise(setImmediate);
  const refused = await client.messages.create(body).catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(RateLimitError);
  expect(refused).toMatchObject({ type: "rate_limit_error", errorCode: "queue_full" });
  expect((refused as RateLimitError).headers.get("Retry-After")).toBe("1");
  running.controller.abort();
  (await waiting).controller.abort();
  await idle(server);

  const fault = () => {
    throw new BackendError("it broke");
  };
  const broken = await listen(testServer({ fault }));
  const failed = await broken.client.messages.create(body).catch((error: unknown) => error);
  expect(failed).toBeInstanceOf(InternalServerError);
  expect(failed).toMatchObject({ status: 500, type: "api_error", apiMessage: "it broke" });
});

test("a failure inside a stream is thrown to who waits for the message", async () => {
  const fault = (pass: number) => {
    if (pass === 5) throw new BackendError("it broke");
  };
  const { server, client } = await listen(testServer({ fault }));
  const final = client.messages.stream(body).finalMessage();
  const error = await final.catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(APIError);
  expect(error).toMatchObject({ type: "api_error", errorCode: "backend_error" });
  await idle(server);
});

test("leaving a stream, or aborting a whole message, frees the slot", async () => {
  const { server, client } = random;
  const stream = client.messages.stream({ ...body, max_tokens: 4000 });
  let events = 0;
  for await (const _ of stream) {
    events++;
    if (events === 5) break;
  }
  await idle(server);
  const hangUp = new AbortController();
  const sent = client.messages.create({ ...body, max_tokens: 4000 }, { signal: hangUp.signal });
  const ended = sent.catch((error: unknown) => error);
  while (server.engine.counts.running < 1) await new Promise(setImmediate);
  hangUp.abort();
  expect(await ended).toBeInstanceOf(Anthropic.APIUserAbortError);
  await idle(server);
  expect(server.reported).toEqual([]);
});
