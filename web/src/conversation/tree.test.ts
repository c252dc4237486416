import { expect, test } from "vitest";
import { blank, ids, reply, user } from "./conversation.cases.ts";
import type { Conversation, Message } from "./message.ts";
import { branchesAt, showing, shownMessages, withChanged, withMessage } from "./tree.ts";

const grown = (...messages: Message[]): Conversation => messages.reduce(withMessage, blank);

const forked = grown(
  user("u1", null),
  reply("a1", "u1"),
  user("u2", "a1"),
  reply("a2", "u2"),
  // The first question again in other words, its reply twice.
  user("v1", null),
  reply("b1", "v1"),
  reply("b2", "v1"),
);

test("shows the branch that was added to last", () => {
  expect(shownMessages(blank)).toEqual([]);
  expect(ids(shownMessages(forked))).toEqual(["v1", "b2"]);
});

test("knows the branches at a message", () => {
  expect(ids(branchesAt(forked, "v1"))).toEqual(["u1", "v1"]);
  expect(ids(branchesAt(forked, "b1"))).toEqual(["b1", "b2"]);
  expect(ids(branchesAt(forked, "u2"))).toEqual(["u2"]);
  expect(branchesAt(forked, "unknown")).toEqual([]);
});

test("goes to a branch, down to what came last in it", () => {
  expect(ids(shownMessages(showing(forked, "u1")))).toEqual(["u1", "a1", "u2", "a2"]);
  expect(ids(shownMessages(showing(forked, "v1")))).toEqual(["v1", "b2"]);
  expect(ids(shownMessages(showing(forked, "b1")))).toEqual(["v1", "b1"]);
  expect(showing(forked, "a2").leaf).toBe("a2");
});

test("changes a message and nothing else", () => {
  const changed = withChanged(forked, reply("a1", "u1", { text: "new" }));
  expect(changed.messages[1]).toMatchObject({ id: "a1", text: "new" });
  expect(changed.messages.toSpliced(1, 1)).toEqual(forked.messages.toSpliced(1, 1));
  expect(changed.leaf).toBe(forked.leaf);
});

test.each([
  ["\n  Hello\nthere", "Hello"],
  ["x".repeat(60), "x".repeat(60)],
  ["x".repeat(61), `${"x".repeat(59)}…`],
  ["word ".repeat(20), `${"word ".repeat(11)}word…`],
])("the first message gives the title: %j", (text, title) => {
  const conversation = withMessage(blank, user("u", null, text));
  expect(conversation.title).toBe(title);
  expect(withMessage(conversation, user("v", null, "other")).title).toBe(title);
  expect(withMessage({ ...blank, title: "mine" }, user("u", null, text)).title).toBe("mine");
});

test("a long conversation is shown at once", () => {
  let conversation = blank;
  const messages = Array.from({ length: 5000 }, (_, at) =>
    user(`${at}`, at === 0 ? null : `${at - 1}`),
  );
  conversation = { ...blank, messages, leaf: "4999" };
  expect(shownMessages(conversation)).toHaveLength(5000);
  expect(showing(conversation, "0").leaf).toBe("4999");
});
