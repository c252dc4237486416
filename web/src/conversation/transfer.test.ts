import { expect, test } from "vitest";
import { blank, fullReply, reply, user } from "./conversation.cases.ts";
import type { Conversation } from "./message.ts";
import { exportedParts, ImportError, imported } from "./transfer.ts";

const conversation: Conversation = {
  id: "c1",
  title: "Title",
  updatedSeconds: 5,
  settings: { ...blank.settings, temperature: 0.5, thinking: false, seed: 3 },
  messages: [
    user("u", null, '"quoted" \u2028 \u0000 😀'),
    fullReply,
    { role: "tool", id: "t", parent: "full", callId: "call_1", text: "2", createdSeconds: 4 },
    reply("a", "t"),
  ],
  leaf: "a",
};

const file = (...conversations: unknown[]): string =>
  JSON.stringify({ format: "deltafold-conversations", version: 1, conversations });

test("what was exported is imported as it was", () => {
  for (const all of [[], [conversation], [conversation, { ...blank, id: "c2" }]]) {
    expect(imported(exportedParts(all).join(""))).toEqual(all);
  }
});

test.each([
  ["", "isn't JSON"],
  ["[]", "doesn't hold conversations"],
  ['{"format": "other"}', "doesn't hold conversations"],
  ['{"format": "deltafold-conversations", "version": 2}', "another version"],
  ['{"format": "deltafold-conversations", "version": 1}', "no list"],
])("refuses a file such as %s", (text, words) => {
  expect(() => imported(text)).toThrow(ImportError);
  expect(() => imported(text)).toThrow(words);
});

const [first, second] = conversation.messages;

test.each<[string, unknown, string]>([
  ["nothing", null, "Conversation 2 of the file: "],
  ["an empty id", { ...conversation, id: "" }, "id must not be empty"],
  ["a title of another type", { ...conversation, title: 7 }, "title must be text"],
  ["no messages", { ...conversation, messages: {} }, "messages "],
  [
    "a message of nobody",
    { ...conversation, messages: [{ ...first, role: "system" }] },
    "messages.0.role must be a message",
  ],
  [
    "a text that is none",
    { ...conversation, messages: [{ ...first, text: { toString: "x" } }] },
    "messages.0.text must be text",
  ],
  [
    "figures that are none",
    { ...conversation, messages: [first, { ...second, figures: { rounds: "1" } }] },
    "messages.1.figures.rounds must be a number",
  ],
  [
    "a message without its parent",
    { ...conversation, messages: [{ ...first, parent: "x" }], leaf: "u" },
    "messages must have each message once, behind its parent",
  ],
  [
    "a message that is its own parent",
    { ...conversation, messages: [{ ...first, parent: "u" }], leaf: "u" },
    "behind its parent",
  ],
  [
    "a message twice",
    { ...conversation, messages: [first, first], leaf: "u" },
    "each message once",
  ],
  ["a leaf that isn't there", { ...conversation, leaf: "x" }, "leaf must name a message"],
  ["no leaf", { ...conversation, leaf: null }, "leaf must name a message"],
  [
    "a setting out of range",
    { ...conversation, settings: { ...conversation.settings, topP: 2 } },
    "settings.topP",
  ],
  [
    "tools that are none",
    { ...conversation, settings: { ...conversation.settings, tools: "{}" } },
    "settings.tools must be tools",
  ],
])("refuses a conversation with %s", (_, wrong, words) => {
  expect(() => imported(file(conversation, wrong))).toThrow(words);
});

test("what isn't known is left out", () => {
  const more = { ...conversation, ["__proto__x"]: 1, messages: [{ ...first, html: "<b>" }] };
  const [taken] = imported(file({ ...more, leaf: "u" }));
  expect(taken).toEqual({ ...conversation, messages: [first], leaf: "u" });
});
