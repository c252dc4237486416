import { expect, test } from "vitest";
import { parseInput } from "./responses-input.ts";
import { messagesOf } from "./responses-items.ts";

const messages = (...input: object[]) => messagesOf(parseInput({ input }));
const user = { role: "user", content: "Go." };
const said = (content: string) => ({ type: "message", role: "assistant", content });
const thought = (text: string) => ({
  type: "reasoning",
  summary: [],
  content: [{ type: "reasoning_text", text }],
});
const call = (call_id: string) => ({
  type: "function_call",
  call_id,
  name: "f",
  arguments: '{"a":1}',
});
const output = (call_id: string, text: string | object[]) => ({
  type: "function_call_output",
  call_id,
  output: text,
});
const asked = (content: string) => ({ role: "user", content });
const reply = (
  content: string | null,
  reasoning_content: string | null = null,
  calls: string[] | null = null,
) => ({
  role: "assistant",
  content,
  reasoning_content,
  tool_calls:
    calls?.map((id) => ({
      id,
      type: "function",
      function: { name: "f", arguments: '{"a":1}' },
    })) ?? null,
});
const result = (tool_call_id: string, content: string) => ({ role: "tool", tool_call_id, content });

test("reasoning, text and calls of one reply are one message", () => {
  expect(
    messages(user, thought("Hmm."), said("Wait."), call("c1"), call("c2"), output("c1", "1")),
  ).toEqual([asked("Go."), reply("Wait.", "Hmm.", ["c1", "c2"]), result("c1", "1")]);
  expect(messages(user, thought("Hmm."), call("c1"), said("Done."), user)).toEqual([
    asked("Go."),
    reply("Done.", "Hmm.", ["c1"]),
    asked("Go."),
  ]);
  expect(messages(user, said("Let me "), call("c1"), said("look."))).toEqual([
    asked("Go."),
    reply("Let me look.", null, ["c1"]),
  ]);
});

test("replies that follow one another stay apart", () => {
  expect(messages(user, said("One"), said("Two"))).toEqual([
    asked("Go."),
    reply("One"),
    reply("Two"),
  ]);
  expect(messages(user, said("One"), thought("Hmm."), said("Two"))).toEqual([
    asked("Go."),
    reply("One"),
    reply("Two", "Hmm."),
  ]);
  expect(messages(user, call("c1"), output("c1", "1"), call("c2"), output("c2", "2"))).toEqual([
    asked("Go."),
    reply(null, null, ["c1"]),
    result("c1", "1"),
    reply(null, null, ["c2"]),
    result("c2", "2"),
  ]);
});

test("parts are joined, whatever side they are named after", () => {
  const parts = [
    { type: "input_text", text: "One " },
    { type: "output_text", text: "two", annotations: [] },
  ];
  expect(
    messages({ role: "developer", content: parts }, { role: "assistant", content: parts }),
  ).toEqual([{ role: "developer", content: "One two" }, reply("One two")]);
  expect(messages(output("c1", parts.slice(0, 1)))).toEqual([result("c1", "One ")]);
});

test("reasoning that nobody can read is passed over", () => {
  const sealed = { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "x" };
  expect(messages(user, sealed, user)).toEqual([asked("Go."), asked("Go.")]);
  expect(messages(user, sealed, said("One"))).toEqual([asked("Go."), reply("One")]);
});

test("items keep their ids, and those without get one", () => {
  const given = [
    { type: "message", id: "msg_1", role: "user", content: "x", status: "completed" },
    { ...thought("Hmm."), id: "rs_1" },
    { ...call("c1"), id: "fc_1" },
    { ...output("c1", "1"), id: "fco_1" },
  ];
  expect(parseInput({ input: given }).map(({ id }) => id)).toEqual([
    "msg_1",
    "rs_1",
    "fc_1",
    "fco_1",
  ]);
  const prefixes = ["msg", "rs", "fc", "fco"];
  for (const [index, { id }] of parseInput({
    input: given.map(({ id: _, ...item }) => item),
  }).entries()) {
    expect(id).toMatch(new RegExp(`^${prefixes[index]}_[a-z2-7]{24}$`));
  }
});
