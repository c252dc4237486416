import { expect, test } from "vitest";
import { joinReply, type ReplyObject, replyEvents, wholeReply } from "./reply-client.ts";
import { Listener } from "./serve/listener.ts";

const usage = { prompt_tokens: 3, completion_tokens: 2 };
const speculative = { rounds: 1, drafted: 2, accepted: 1 };
const end = { token_sha: "abc", speculative };

const delta = (part: object, finish_reason: string | null = null, extras: object = {}) => ({
  choices: [{ delta: part, finish_reason }],
  ...extras,
});
const chat = [
  delta({ content: "" }),
  delta({ reasoning_content: "Hm. Ä" }),
  delta({ content: "4" }),
  delta({ content: "2\n\n" }),
  delta({}, "stop", end),
  { choices: [], usage },
];
const said = {
  text: "42\n\n",
  reasoning: "Hm. Ä",
  finishReason: "stop",
  promptTokens: 3,
  tokens: 2,
  tokenSha: "abc",
  speculative,
};

const frames = (objects: readonly object[]) =>
  objects.map((object) => `data: ${JSON.stringify(object)}\n\n`).join("");
const done = "data: [DONE]\n\n";

/** What comes of a server that sends `text`, `step` bytes at a time. */
async function eventsOf(text: string, step = 1000): Promise<ReplyObject[]> {
  const bytes = new TextEncoder().encode(text);
  let asked = {};
  await using listener = await Listener.open("127.0.0.1", 0, async (request) => {
    asked = (await request.json()) as object;
    let at = 0;
    const pull = (controller: ReadableStreamDefaultController<Uint8Array>) => {
      if (at < bytes.length) controller.enqueue(bytes.slice(at, at + step));
      else controller.close();
      at += step;
    };
    return new Response(new ReadableStream({ pull }));
  });
  const events: ReplyObject[] = [];
  for await (const event of replyEvents(listener.url, { a: 1 })) events.push(event);
  expect(asked).toEqual({ a: 1, stream: true, stream_options: { include_usage: true } });
  return events;
}

test.each([1, 7, 1000])("events that come %d bytes at a time are put together", async (step) => {
  const text = `: a comment\n\n${frames(chat)}${done}`;
  expect(joinReply(await eventsOf(text, step))).toEqual(said);
});

test("whole replies say the same", () => {
  const message = { content: "42\n\n", reasoning_content: "Hm. Ä" };
  const choices = [{ message, finish_reason: "stop" }];
  expect(joinReply([{ choices, usage, ...end }])).toEqual(said);
  const texts = [{ text: "42\n\n", finish_reason: "stop" }];
  expect(joinReply([{ choices: texts, usage, ...end }])).toEqual({ ...said, reasoning: "" });
});

test.each([
  ["the reply broke off", frames(chat)],
  ["an event broke off: data: [", `${frames(chat)}data: [`],
  ["the reply goes on behind its end", `${frames(chat)}${done}${frames([chat[0]!])}`],
  ["the device is gone", `event: error\n${frames([{ error: { message: "the device is gone" } }])}`],
])("%s", async (message, text) => {
  await expect(eventsOf(text)).rejects.toThrow(message);
});

test.each([
  ["0 times its token_sha", [...chat.slice(0, 4), delta({}, "stop", { speculative }), chat[5]!]],
  ["2 times its finish_reason", [...chat, delta({}, "length")]],
  ["0 times its usage", chat.slice(0, -1)],
])("a reply that has %s is refused", (message, events) => {
  expect(() => joinReply(events)).toThrow(message);
});

test("what the server refuses is told", async () => {
  await using listener = await Listener.open("127.0.0.1", 0, () => {
    return new Response("too much", { status: 429 });
  });
  await expect(wholeReply(listener.url, {})).rejects.toThrow("429: too much");
});
