import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { ReplyText, type ReplyTextOptions } from "./reply-text.ts";
import { joinParts, type ReplyPart } from "./text/reply-parser.ts";
import { Tokenizer } from "./text/tokenizer.ts";

const nano = new URL("../models/nano/tokenizer.json", import.meta.url);
const tokenizer = Tokenizer.fromJson(readFileSync(nano, "utf8"), null, "nano/tokenizer.json");

const call = (name: string, end = "\n</tool_call>") =>
  `<tool_call>\n<function=${name}>\n<parameter=a>\nx\n</parameter>\n</function>${end}`;
const chat = { reasoningOpen: true, tools: [], oneCall: false };
const oneCall = { ...chat, oneCall: true };

/** A reply of these tokens, up to where it says that it has ended. */
function replied(text: string, options: Partial<ReplyTextOptions>) {
  const reply = new ReplyText(tokenizer, { stop: [], chat: null, ...options });
  const parts: ReplyPart[] = [];
  const ids = tokenizer.encode(text);
  let read = 0;
  while (read < ids.length && !reply.ended) parts.push(...reply.push(ids[read++]!));
  const last = reply.end();
  const left = tokenizer.decode(ids.slice(read));
  return { ...joinParts([...parts, ...last]), last, left, ended: reply.ended, reply };
}

test("a reply has ended once a stop string came", () => {
  const { content, left, last, ended, reply } = replied("one two three four", { stop: ["ee f"] });
  expect({ content, last, ended }).toEqual({ content: "one two thr", last: [], ended: true });
  expect("four".endsWith(left)).toBe(true);
  expect(reply).toMatchObject({ text: "one two thr", stopped: "ee f" });
});

test("what may begin a stop string is released at the end", () => {
  const { content, left, ended, reply } = replied("one two", { stop: ["o three"] });
  expect({ content, left, ended }).toEqual({ content: "one two", left: "", ended: false });
  expect(reply).toMatchObject({ text: "one two", stopped: null });
});

const a = (name: string) => ({ name, arguments: '{"a":"x"}' });

test("a reply that may call twice goes on behind a call", () => {
  const text = `Hm.\n</think>\n\nOk.\n${call("f")}\n${call("g")}\n`;
  const { content, toolCalls, left, ended } = replied(text, { chat });
  expect({ content, left, ended }).toEqual({ content: "Ok.", left: "", ended: false });
  expect(toolCalls).toEqual([a("f"), a("g")]);
});

test("a reply of one call has ended behind it", () => {
  const text = `Hm.\n</think>\n\nOk.\n${call("f")}\nAnd ${call("g")}\n`;
  const { content, toolCalls, left, last, ended } = replied(text, { chat: oneCall });
  expect({ content, last, ended }).toEqual({ content: "Ok.", last: [], ended: true });
  expect(toolCalls).toEqual([a("f")]);
  expect(`\nAnd ${call("g")}\n`.endsWith(left)).toBe(true);
  expect(left).toContain(call("g"));
});

test("so it has where other text stands in place of the call's end, of which nothing comes", () => {
  const text = `${call("f", "\n")}And ${call("g")}\n`;
  const { content, toolCalls, left, last, ended } = replied(text, { chat: oneCall });
  expect({ content, last, ended }).toEqual({ content: "", last: [], ended: true });
  expect(toolCalls).toEqual([a("f")]);
  expect(left).toContain(call("g"));
});

test("a call at the end of which a stop string may begin ends with the reply", () => {
  const { toolCalls, last, ended } = replied(call("f"), { chat: oneCall, stop: ["_call>."] });
  expect({ toolCalls, ended }).toEqual({ toolCalls: [a("f")], ended: true });
  expect(last).toEqual([]);
});

test("a reply that a stop string cuts in a call leaves its arguments open", () => {
  const { toolCalls, ended } = replied(call("f"), { chat: oneCall, stop: ["</param"] });
  expect(toolCalls).toEqual([{ name: "f", arguments: '{"a":"x' }]);
  expect(ended).toBe(true);
});

test("without a chat, nothing is split off", () => {
  const text = `<think>Hm.</think>${call("f")}`;
  expect(replied(text, {})).toMatchObject({ content: text, reasoning: "", toolCalls: [] });
});
