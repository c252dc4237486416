import { afterAll, describe, expect, test } from "vitest";
import { BackendError } from "../errors.ts";
import { endServers, Script, testServer } from "./engine.cases.ts";
import { chatPath, eventsOf, hello, post, replyTo, textPath, weatherCall } from "./http.cases.ts";
import { expectValid, expectValidEvent } from "./openapi.cases.ts";
import {
  finalOf,
  noThinking,
  respond,
  responseEvents,
  responsesPath,
  weather,
} from "./responses.cases.ts";

const script = new Script();
const scripted = testServer({ logits: script.logits });
const random = testServer();
const { app } = scripted;
afterAll(() => endServers(scripted, random));

const say = `Let me see.\n</think>\n\nIt is \u{1F327}.\n\n${weatherCall("Oslo")}`;
const twoCalls = `${weatherCall("Oslo")}\n${weatherCall("Bergen")}`;
const { type, ...declared } = weather as { type: string };
const tools = [{ type, function: declared }];
const logprobs = { logprobs: true, top_logprobs: 3 };

type Row = [what: string, fields: object, say: string];

const chats: Row[] = [
  ["reasoning and content", {}, "Let me see.\n</think>\n\nGood day \u{1F980}"],
  ["content alone", noThinking, "Good day"],
  ["nothing", noThinking, ""],
  ["an open think block", {}, "Let me"],
  ["reasoning, content and a call", { tools }, say],
  ["two calls", { tools, ...noThinking }, twoCalls],
  ["one call of two", { tools, ...noThinking, parallel_tool_calls: false }, twoCalls],
  ["half a call", { tools, ...noThinking, max_tokens: 12 }, twoCalls],
  ["markup without tools", noThinking, twoCalls],
  ["logprobs", { ...noThinking, ...logprobs }, "Good day \u{1F980}"],
  ["logprobs of calls", { tools, ...logprobs }, say],
  ["logprobs without others", { ...noThinking, logprobs: true }, "Good day"],
  ["its length", { max_tokens: 2 }, say],
  ["a stop string", { ...noThinking, stop: ["day"] }, "Good day"],
];

describe("chats", () => {
  test.each(chats)("%s, whole", async (_, fields, text) => {
    script.say(text);
    const reply = await replyTo(app, chatPath, { messages: hello, ...fields });
    expectValid("CreateChatCompletionResponse", reply);
  });

  test.each(chats)("%s, streamed", async (_, fields, text) => {
    script.say(text);
    const body = { messages: hello, stream_options: { include_usage: true }, ...fields };
    const events = await eventsOf(app, chatPath, body);
    for (const event of events) expectValid("CreateChatCompletionStreamResponse", event);
    expect(events.at(-1)).toMatchObject({ choices: [], usage: expect.any(Object) });
  });

  test("several choices, whole and streamed", async () => {
    const body = { messages: hello, n: 2, max_tokens: 5, ...logprobs };
    const reply = await replyTo(random.app, chatPath, body);
    expect(reply.choices).toHaveLength(2);
    expectValid("CreateChatCompletionResponse", reply);
    for (const event of await eventsOf(random.app, chatPath, body)) {
      expectValid("CreateChatCompletionStreamResponse", event);
    }
  });
});

const completions: Row[] = [
  ["a text", {}, "there was a \u{1F980}"],
  ["nothing", {}, ""],
  ["its length", { max_tokens: 2 }, "there was a crab"],
  ["a stop string", { stop: "was" }, "there was a crab"],
  ["logprobs", { logprobs: 2 }, "there was a \u{1F980}"],
  ["logprobs without others", { logprobs: 0 }, "there was"],
  ["an echo", { echo: true }, "there was"],
];

describe("completions", () => {
  test.each(completions)("%s, whole", async (_, fields, text) => {
    script.say(text);
    const reply = await replyTo(app, textPath, { prompt: "Once", ...fields });
    expectValid("CreateCompletionResponse", reply);
    expect(reply.choices[0]!.finish_reason).not.toBeNull();
  });

  test.each(completions)("%s, streamed", async (_, fields, text) => {
    script.say(text);
    const body = { prompt: "Once", stream_options: { include_usage: true }, ...fields };
    const events = await eventsOf(app, textPath, body);
    for (const event of events) expectValid("CreateCompletionResponse", event);
    const reasons = events.flatMap(({ choices }) => choices.map((each) => each.finish_reason));
    expect(reasons.filter((reason) => reason !== null)).toEqual([reasons.at(-1)]);
  });

  test("an echo with logprobs", async () => {
    script.say("there was");
    const body = { prompt: "Once upon a time", echo: true, logprobs: 2 };
    const reply = await replyTo(app, textPath, body);
    expectValid("CreateCompletionResponse", reply);
    expect(reply.choices[0]!.logprobs!.token_logprobs![0]).toBeNull();
  });

  test("several choices, whole and streamed", async () => {
    const body = { prompt: "Once", n: 2, max_tokens: 5, logprobs: 1 };
    expectValid("CreateCompletionResponse", await replyTo(random.app, textPath, body));
    for (const event of await eventsOf(random.app, textPath, body)) {
      expectValid("CreateCompletionResponse", event);
    }
  });
});

/** The same replies, as responses have their fields. */
const responses: Row[] = [
  ["reasoning and content", {}, "Let me see.\n</think>\n\nGood day \u{1F980}"],
  ["content alone", noThinking, "Good day"],
  ["nothing", noThinking, ""],
  ["an open think block", {}, "Let me"],
  ["reasoning, content and a call", { tools: [weather] }, say],
  ["two calls", { tools: [weather], ...noThinking }, twoCalls],
  ["half a call", { tools: [weather], ...noThinking, max_output_tokens: 12 }, twoCalls],
  ["its length", { ...noThinking, max_output_tokens: 2 }, "Good day to you"],
  ["instructions and metadata", { instructions: "Be kind.", metadata: { a: "b" } }, "Hm"],
  [
    "logprobs",
    { ...noThinking, include: ["message.output_text.logprobs"], top_logprobs: 3 },
    "Good day \u{1F980}",
  ],
];

describe("responses", () => {
  test.each(responses)("%s, whole", async (_, fields, text) => {
    script.say(text);
    expectValid("Response", await respond(app, { input: "Hello", ...fields }));
  });

  test.each(responses)("%s, streamed", async (_, fields, text) => {
    script.say(text);
    const events = await responseEvents(app, { input: "Hello", ...fields });
    for (const event of events) expectValidEvent(event);
    expectValid("Response", finalOf(events));
  });

  test("stored ones and their items", async () => {
    script.say(say);
    const { id } = await respond(app, { input: "Hello", tools: [weather] });
    const stored = `${responsesPath}/${id}`;
    expectValid("Response", await (await app.request(stored)).json());
    script.say("\n</think>\n\nTake an umbrella.");
    const next = await respond(app, { input: "Thanks", previous_response_id: id });
    expectValid("Response", next);
    const items = await app.request(`${responsesPath}/${next.id}/input_items`);
    expectValid("ResponseItemList", await items.json());
  });
});

test("models", async () => {
  expectValid("ListModelsResponse", await (await app.request("/v1/models")).json());
  expectValid("Model", await (await app.request("/v1/models/nano")).json());
});

const refused: [status: number, path: string, body: object | null][] = [
  [400, chatPath, {}],
  [400, chatPath, { messages: hello, n: 100 }],
  [400, chatPath, { messages: hello, max_tokens: 1e6 }],
  [400, textPath, { prompt: [9e9] }],
  [400, responsesPath, { input: 5 }],
  [404, responsesPath, { input: "a", previous_response_id: "resp_x" }],
  [404, "/v1/unknown", {}],
  [404, "/v1/models/x", null],
  [404, `${responsesPath}/resp_x`, null],
  [405, chatPath, null],
];

test.each(refused)("an error of status %i at %s for %j", async (status, path, body) => {
  const response = await (body ? post(app, path, body) : app.request(path));
  expect(response.status).toBe(status);
  expectValid("ErrorResponse", await response.json());
});

test("failures, before a stream and inside it", async () => {
  let last = 0;
  const fault = (pass: number) => {
    last = pass;
    if (pass === 1 || pass === 6) throw new BackendError("it broke");
  };
  const broken = testServer({ fault });
  const body = { messages: hello, max_tokens: 20, ignore_eos: true };
  const early = await post(broken.app, chatPath, body);
  expect(early.status).toBe(500);
  expectValid("ErrorResponse", await early.json());
  const events = await eventsOf(broken.app, chatPath, body);
  expectValid("ErrorResponse", events.at(-1));
  expect(last).toBe(6);
  await broken.engine[Symbol.asyncDispose]();
});

test("a response that fails inside its stream", async () => {
  const fault = (pass: number) => {
    if (pass === 5) throw new BackendError("it broke");
  };
  const broken = testServer({ fault });
  const body = { input: "Hello", max_output_tokens: 20, ignore_eos: true };
  const events = await responseEvents(broken.app, body);
  for (const event of events) expectValidEvent(event);
  expect(events.map(({ type: each }) => each).slice(-2)).toEqual(["error", "response.failed"]);
  await broken.engine[Symbol.asyncDispose]();
});

test("what isn't valid is told", () => {
  const wrong = { id: "x", object: "chat.completion" };
  expect(() => expectValid("CreateChatCompletionResponse", wrong)).toThrow("choices");
  expect(() => expectValidEvent({ type: "response.created" })).toThrow("sequence_number");
  expect(() => expectValidEvent({ type: "response.made_up" })).toThrow("response.made_up");
});
