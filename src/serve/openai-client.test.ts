import type { AddressInfo } from "node:net";
import { serve } from "@hono/node-server";
import OpenAI, { APIError, BadRequestError, NotFoundError } from "openai";
import { zodResponseFormat } from "openai/helpers/zod";
import { afterAll, expect, test } from "vitest";
import { z } from "zod";
import { BackendError } from "../errors.ts";
import { idle, Script, type TestServer, testServer, tokenizer } from "./engine.cases.ts";

type Messages = OpenAI.Chat.ChatCompletionMessageParam[];

const messages: Messages = [{ role: "user", content: "Hello" }];
const model = "nano";
const script = new Script();
const random = await listen(testServer());
const scripted = await listen(testServer({ logits: script.logits }));
const stopAll: (() => Promise<void>)[] = [random.stop, scripted.stop];

afterAll(async () => {
  for (const stop of stopAll) await stop();
});

interface Listening {
  readonly server: TestServer;
  readonly client: OpenAI;
  readonly stop: () => Promise<void>;
}

/** Serves over a real socket, so that hang-ups are real ones. */
async function listen(server: TestServer): Promise<Listening> {
  const { promise, resolve } = Promise.withResolvers<AddressInfo>();
  const http = serve({ fetch: server.app.fetch, port: 0, hostname: "127.0.0.1" }, resolve);
  const { port } = await promise;
  const baseURL = `http://127.0.0.1:${port}/v1`;
  const client = new OpenAI({ baseURL, apiKey: "none", maxRetries: 0 });
  const stop = async () => {
    await server.engine[Symbol.asyncDispose]();
    expect(server.backend.openSlots.size).toBe(0);
    await new Promise((closed) => http.close(closed));
  };
  return { server, client, stop };
}

test("models", async () => {
  const { data } = await random.client.models.list();
  expect(data.map(({ id }) => id)).toEqual([model]);
  expect(await random.client.models.retrieve(model)).toMatchObject({ owned_by: "deltafold" });
  await expect(random.client.models.retrieve("x")).rejects.toBeInstanceOf(NotFoundError);
});

test("a chat, whole and streamed", async () => {
  const say = "Hmm.\n</think>\n\nGood day \u{1F980}";
  script.say(say);
  const whole = await scripted.client.chat.completions.create({ model, messages });
  const { message, finish_reason } = whole.choices[0]!;
  expect(message).toMatchObject({ content: "Good day \u{1F980}", reasoning_content: "Hmm." });
  expect(finish_reason).toBe("stop");
  expect(whole.usage!.completion_tokens).toBe(tokenizer.encode(say).length + 1);

  script.say(say);
  const stream = scripted.client.chat.completions.stream({
    model,
    messages,
    stream_options: { include_usage: true },
  });
  const contents: string[] = [];
  stream.on("content", (delta) => contents.push(delta));
  const final = await stream.finalChatCompletion();
  expect(contents.join("")).toBe("Good day \u{1F980}");
  expect(final.choices[0]).toMatchObject({ message: { content: "Good day \u{1F980}" } });
  const { prompt_tokens } = whole.usage!;
  expect(final.usage).toEqual({
    ...whole.usage!,
    // Next turns part from this prompt at its last token, the newline behind <think>.
    prompt_tokens_details: { cached_tokens: prompt_tokens - 1 },
  });
});

test("usage only where it is asked for", async () => {
  const body = { model, messages, max_tokens: 4, stream: true } as const;
  for (const include_usage of [true, false]) {
    const options = { stream_options: { include_usage } };
    const stream = await random.client.chat.completions.create({ ...body, ...options });
    const usages: unknown[] = [];
    for await (const { choices, usage } of stream) {
      if (choices.length === 0) usages.push(usage!.completion_tokens);
      else expect(usage).toBeUndefined();
    }
    expect(usages).toEqual(include_usage ? [4] : []);
  }
});

test("completions of a text and of its ids, whole and streamed", async () => {
  const prompt = "Once upon a time";
  const { completions } = random.client;
  const body = { model, max_tokens: 12, seed: 5, temperature: 1 };
  const { choices } = await completions.create({ ...body, prompt });
  const byIds = await completions.create({ ...body, prompt: tokenizer.encode(prompt) });
  expect(byIds.choices[0]!.text).toBe(choices[0]!.text);
  let text = "";
  for await (const part of await completions.create({ ...body, prompt, stream: true })) {
    text += part.choices[0]!.text;
  }
  expect(text).toBe(choices[0]!.text);
});

test("completions with logprobs", async () => {
  script.say("one two");
  const body = { model, prompt: "zero", logprobs: 2 };
  const { choices } = await scripted.client.completions.create(body);
  const { tokens, token_logprobs, top_logprobs, text_offset } = choices[0]!.logprobs!;
  expect(tokens!.join("")).toBe("one two<|im_end|>");
  expect(text_offset![0]).toBe(0);
  expect(token_logprobs!.at(-1)).toBeCloseTo(0);
  expect(top_logprobs!.at(-1)).toHaveProperty("<|im_end|>");
});

test("a form", async () => {
  script.say('Hm.\n</think>\n\n{"city":"Oslo","days":3}');
  const form = zodResponseFormat(z.object({ city: z.string(), days: z.number().int() }), "trip");
  const asked = { model, messages, response_format: form };
  const { choices } = await scripted.client.chat.completions.parse(asked);
  expect(choices[0]!.message.parsed).toEqual({ city: "Oslo", days: 3 });
});

test("stop strings", async () => {
  script.say("one two three");
  const reply = await scripted.client.completions.create({ model, prompt: "x", stop: ["three"] });
  expect(reply.choices[0]).toMatchObject({ text: "one two ", finish_reason: "stop" });
});

test("tools: a call, its result, and a second turn", async () => {
  const call =
    "Let me see.\n</think>\n\n<tool_call>\n<function=add>\n<parameter=a>\n1\n</parameter>\n" +
    "<parameter=b>\n2\n</parameter>\n</function>\n</tool_call>";
  const number = { type: "number" };
  const parameters = { type: "object", properties: { a: number, b: number } };
  const tools = [{ type: "function" as const, function: { name: "add", parameters } }];
  script.say(call);
  const stream = scripted.client.chat.completions.stream({ model, messages, tools });
  const { message, finish_reason } = (await stream.finalChatCompletion()).choices[0]!;
  expect(finish_reason).toBe("tool_calls");
  const [made] = message.tool_calls!;
  expect(made).toMatchObject({
    type: "function",
    function: { name: "add", arguments: '{"a":1,"b":2}' },
  });
  script.say("\n</think>\n\n3");
  const result = { role: "tool" as const, tool_call_id: made!.id, content: "3" };
  const second = [...messages, message, result];
  const reply = await scripted.client.chat.completions.create({ model, messages: second, tools });
  expect(reply.choices[0]!.message.content).toBe("3");
});

test("errors are the client's own exceptions", async () => {
  const { chat, completions } = random.client;
  const tooLong = completions.create({ model, prompt: Array(5000).fill(1), stream: true });
  const error = await tooLong.catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(BadRequestError);
  expect(error).toMatchObject({ code: "context_length_exceeded", param: "prompt" });
  const empty = chat.completions.create({ model, messages: [] });
  await expect(empty).rejects.toMatchObject({ status: 400, param: "messages" });
  const three = chat.completions.create({ model, messages, n: 3 });
  await expect(three).rejects.toMatchObject({ code: "too_many", param: "n" });
});

test("a failure inside a stream is thrown to who iterates", async () => {
  const fault = (pass: number) => {
    if (pass === 5) throw new BackendError("it broke");
  };
  const { server, client, stop } = await listen(testServer({ fault }));
  stopAll.push(stop);
  const body = { model, prompt: "x", max_tokens: 99, stream: true } as const;
  const stream = await client.completions.create(body);
  const read = async () => {
    for await (const { choices } of stream) expect(choices).toHaveLength(1);
  };
  const error = await read().catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(APIError);
  expect(error).toMatchObject({ code: "backend_error", type: "server_error" });
  await idle(server);
});

test("leaving a stream frees the slot", async () => {
  const body = { model, prompt: "x", max_tokens: 4000, stream: true } as const;
  const stream = await random.client.completions.create({ ...body });
  let parts = 0;
  for await (const _ of stream) {
    parts++;
    if (parts === 3) break;
  }
  await idle(random.server);
});

test("twenty clients that drop while queued, in the prompt and in the reply", async () => {
  const { server, client } = random;
  const reply = { model, prompt: "x", max_tokens: 6, seed: 1 };
  const before = await client.completions.create(reply);
  const prompts = ["x", Array<number>(3000).fill(5)];
  const drops = Array.from({ length: 20 }, async (_, index) => {
    const hangUp = new AbortController();
    const prompt = prompts[index % 2]!;
    const body = { model, prompt, max_tokens: 900, stream: index % 4 < 2 };
    const sent = client.completions.create(body, { signal: hangUp.signal });
    const read = async () => {
      const answer = await sent;
      if (Symbol.asyncIterator in answer) for await (const _ of answer);
    };
    const ended = read().catch((error: unknown) => error);
    await new Promise((resolve) => setTimeout(resolve, 10 * index));
    hangUp.abort();
    return await ended;
  });
  await Promise.all(drops);
  await idle(server);
  const after = await client.completions.create(reply);
  expect(after).toMatchObject({ choices: before.choices });
  expect(server.reported).toEqual([]);
});
