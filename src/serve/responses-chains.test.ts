/** Conversations that are gone on from a stored response, and what they cost. */
import { afterEach, expect, test, vi } from "vitest";
import type { ChatRequest } from "../engine.ts";
import { idle, Script, testServer } from "./engine.cases.ts";
import { chatPath, expectError, type ReplyObject, replyTo, weatherCall } from "./http.cases.ts";
import {
  noThinking,
  respond,
  responsesPath,
  type TestResponse,
  weather,
} from "./responses.cases.ts";

const script = new Script();

function newServer() {
  const server = testServer({ logits: script.logits });
  const chat = vi.spyOn(server.engine, "chat");
  const promptOf = (request: ChatRequest) => server.engine.promptOf(request);
  return { ...server, prompts: () => chat.mock.calls.map(([request]) => promptOf(request)) };
}
afterEach(() => vi.restoreAllMocks());

const { type, ...described } = weather as { type: string };
const chatTools = [{ type, function: described }];

/** One turn of a conversation: what its client adds, in both APIs, and what the model says. */
interface Turn {
  readonly says: string;
  /** @param before the response before it */
  input(before: TestResponse | null): string | object[];
  /** @param before the reply before it */
  messages(before: ReplyObject | null): object[];
}

const turns: readonly Turn[] = [
  {
    says: `Where?\n</think>\n\nLet me look.\n${weatherCall("Paris")}\n${weatherCall("Oslo")}`,
    input: () => "How is the weather?",
    messages: () => [{ role: "user", content: "How is the weather?" }],
  },
  {
    says: "Both known.\n</think>\n\nRain here, snow there.",
    input: (before) =>
      before!.output
        .filter((item) => item.type === "function_call")
        .map(({ call_id }, index) => ({
          type: "function_call_output",
          call_id,
          output: index === 0 ? "rain" : [{ type: "input_text", text: "snow" }],
        })),
    messages: (before) =>
      before!.choices[0]!.message!.tool_calls!.map(({ id }, index) => ({
        role: "tool",
        tool_call_id: id,
        content: index === 0 ? "rain" : "snow",
      })),
  },
  {
    says: "Polite.\n</think>\n\nWelcome.",
    input: () => [{ role: "user", content: [{ type: "input_text", text: "Thanks!" }] }],
    messages: () => [{ role: "user", content: "Thanks!" }],
  },
];

test("three turns make a chat's prompts, and find as much in the cache", async () => {
  const instructions = "Answer in a few words.";
  const byResponses = newServer();
  const responses: TestResponse[] = [];
  const byChats = newServer();
  const replies: ReplyObject[] = [];
  const system = { role: "system", content: instructions };
  const messages: object[] = [];
  for (const turn of turns) {
    const before = responses.at(-1) ?? null;
    script.say(turn.says);
    const previous_response_id = before?.id ?? null;
    const tools = [weather];
    const input = turn.input(before);
    const body = { instructions, tools, previous_response_id, input };
    responses.push(await respond(byResponses.app, body));
    await idle(byResponses);

    const reply = replies.at(-1) ?? null;
    if (reply) messages.push(reply.choices[0]!.message!);
    messages.push(...turn.messages(reply));
    script.say(turn.says);
    const chat = { messages: [system, ...messages], tools: chatTools };
    replies.push(await replyTo(byChats.app, chatPath, chat));
    await idle(byChats);
  }
  expect(byResponses.prompts()).toEqual(byChats.prompts());
  for (const [index, { usage, ...response }] of responses.entries()) {
    const { prompt_tokens, prompt_tokens_details } = replies[index]!.usage!;
    expect(usage.input_tokens).toBe(prompt_tokens);
    expect(usage.input_tokens_details.cached_tokens).toBe(prompt_tokens_details.cached_tokens);
    if (index > 0) expect(prompt_tokens_details.cached_tokens).toBeGreaterThan(0);
    expect(response["token_sha"]).toBe(replies[index]!.token_sha);
  }
  for (const { engine } of [byResponses, byChats]) await engine[Symbol.asyncDispose]();
});

test("sending every item again makes the same prompts as naming the response before", async () => {
  const server = newServer();
  const items: unknown[] = [];
  let before: TestResponse | null = null;
  for (const turn of turns) {
    const input = turn.input(before);
    script.say(turn.says);
    const chained = { input, tools: [weather], previous_response_id: before?.id ?? null };
    const response: TestResponse = await respond(server.app, chained);
    items.push(...(typeof input === "string" ? [{ role: "user", content: input }] : input));
    script.say(turn.says);
    await respond(server.app, { input: items, tools: [weather], store: false });
    items.push(...response.output);
    before = response;
  }
  const prompts = server.prompts();
  for (const index of [0, 2, 4]) expect(prompts[index + 1]).toEqual(prompts[index]);
  await server.engine[Symbol.asyncDispose]();
});

test("instructions are not carried over, and a reply of nothing keeps its turn", async () => {
  const server = newServer();
  script.say("");
  const first = await respond(server.app, { input: "One", instructions: "Old.", ...noThinking });
  script.say("Yes.");
  const body = { input: "Two", previous_response_id: first.id, instructions: "New." };
  await respond(server.app, { ...body, ...noThinking });
  const chat = {
    messages: [
      { role: "system", content: "New." },
      { role: "user", content: "One" },
      { role: "assistant", content: "" },
      { role: "user", content: "Two" },
    ],
    templateKwargs: { enable_thinking: false },
  };
  expect(server.prompts()[1]).toEqual(server.engine.promptOf(chat));
  await server.engine[Symbol.asyncDispose]();
});

test("one response may be gone on from twice, and deleted from under what follows", async () => {
  const server = newServer();
  const ask = async (input: string, previous_response_id: string | null = null) => {
    script.say(`Re ${input}`);
    return await respond(server.app, { input, previous_response_id, ...noThinking });
  };
  const first = await ask("one");
  const left = await ask("left", first.id);
  const right = await ask("right", first.id);
  await server.app.request(`${responsesPath}/${first.id}`, { method: "DELETE" });
  await ask("more", left.id);
  await ask("more", right.id);
  const [more, other] = server.prompts().slice(-2);
  const said = (...texts: string[]) => ({
    messages: texts.flatMap((text) => [
      { role: "user", content: text },
      { role: "assistant", content: `Re ${text}` },
    ]),
    templateKwargs: { enable_thinking: false },
  });
  const { messages, ...rest } = said("one", "left", "more");
  expect(more).toEqual(server.engine.promptOf({ messages: messages.slice(0, -1), ...rest }));
  const { messages: otherMessages } = said("one", "right", "more");
  const otherPrompt = { messages: otherMessages.slice(0, -1), ...rest };
  expect(other).toEqual(server.engine.promptOf(otherPrompt));
  await server.engine[Symbol.asyncDispose]();
});

test("a response that ended within a call can't be gone on from", async () => {
  const server = newServer();
  script.say(weatherCall("Paris"));
  const body = { input: "Hello", tools: [weather], ...noThinking };
  const { id, output } = await respond(server.app, { ...body, stop: "Paris" });
  expect(output).toMatchObject([{ type: "function_call", status: "incomplete" }]);
  await expectError(server.app, responsesPath, { ...body, previous_response_id: id }, 400, {
    code: "invalid_value",
    param: "previous_response_id",
    words: "ended within a call",
  });
  await server.engine[Symbol.asyncDispose]();
});
