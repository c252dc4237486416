import { expect, test } from "vitest";
import type { Reply, UserMessage } from "../conversation/message.ts";
import { plainSettings } from "../conversation/settings.ts";
import { shownMessages } from "../conversation/tree.ts";
import { settled, TestChats } from "./chats.cases.ts";
import type { Chats } from "./chats.ts";

const shown = ({ open }: Chats) => shownMessages(open.value);
const texts = (chats: Chats): string[] =>
  shown(chats).map(({ role, ...message }) => {
    return `${role}: ${"text" in message ? message.text : ""}`;
  });
const replyAt = (chats: Chats, at: number) => shown(chats).at(at) as Reply;
const userAt = (chats: Chats, at: number) => shown(chats).at(at) as UserMessage;

test("a reply is shown as it comes, at most once a frame, and kept at its end", async () => {
  const { chats, store, ...test } = new TestChats();
  chats.send("Hi");
  const { id } = chats.open.value;
  const run = chats.runs.value.get(id)!;
  await settled();
  const [asked] = test.asked;
  expect(asked!.body.messages).toEqual([{ role: "user", content: "Hi" }]);
  await asked!.send("He");
  await asked!.send("llo");
  expect(test.frames).toHaveLength(1);
  expect(run.reply.value.text).toBe("");
  test.frames.pop()!();
  expect(run.reply.value.text).toBe("Hello");
  await asked!.end();
  expect(run.isOver.value).toBe(true);
  expect(chats.runs.value.size).toBe(0);
  expect(texts(chats)).toEqual(["user: Hi", "assistant: Hello"]);
  expect(replyAt(chats, 1)).toMatchObject({ ending: "stop", figures: { seed: asked!.body.seed } });
  expect(await store.get(id)).toEqual(chats.open.value);
  expect(chats.library.list.value).toEqual([{ id, title: "Hi", updatedSeconds: 100 }]);
});

test("a growing reply is kept each second", async () => {
  const tested = new TestChats();
  const { chats, store, clock } = tested;
  chats.send("Hi");
  await settled();
  const kept = async () => (await store.get(chats.open.value.id))!.messages.at(-1);
  await tested.last.send("a");
  expect(await kept()).toMatchObject({ text: "" });
  clock.ms = 1000;
  await tested.last.send("b");
  expect(await kept()).toMatchObject({ text: "ab", ending: "stopped" });
});

test("the rate counts from the first piece", async () => {
  const tested = new TestChats();
  const { chats, clock } = tested;
  chats.send("Hi");
  await settled();
  const [run] = chats.runs.value.values();
  clock.ms = 5000;
  await tested.last.send("a");
  tested.draw();
  expect(run!.tokensPerSecond.value).toBeNull();
  for (let at = 0; at < 10; at++) await tested.last.send("b");
  clock.ms = 5500;
  tested.draw();
  expect(run!.tokensPerSecond.value).toBe(20);
});

test("stopping ends the request and keeps what came", async () => {
  const tested = new TestChats();
  const { chats } = tested;
  chats.send("Hi");
  await settled();
  await tested.last.send("Hel");
  chats.stop();
  expect(tested.last.signal.aborted).toBe(true);
  await settled();
  expect(chats.runs.value.size).toBe(0);
  expect(replyAt(chats, 1)).toMatchObject({ text: "Hel", ending: "stopped", error: null });
});

test("what is sent while a reply is written changes nothing", async () => {
  const tested = new TestChats();
  tested.chats.send("Hi");
  await settled();
  tested.chats.send("again");
  tested.chats.edit(userAt(tested.chats, 0), "other");
  expect(tested.asked).toHaveLength(1);
  expect(texts(tested.chats)).toEqual(["user: Hi", "assistant: "]);
});

test("the next turn carries the conversation", async () => {
  const tested = new TestChats();
  await tested.turn("one", "1");
  await tested.turn("two", "2");
  expect(tested.last.body.messages).toEqual([
    { role: "user", content: "one" },
    { role: "assistant", content: "1" },
    { role: "user", content: "two" },
  ]);
});

test("edits and repetitions are branches, with their own seeds", async () => {
  const tested = new TestChats();
  const { chats } = tested;
  await tested.turn("one", "1");
  await tested.turn("two", "2");
  chats.edit(userAt(chats, 2), "three");
  await settled();
  await tested.last.send("3");
  await tested.last.end();
  expect(texts(chats)).toEqual(["user: one", "assistant: 1", "user: three", "assistant: 3"]);
  const first = tested.last.body;
  chats.regenerate(replyAt(chats, 3));
  await settled();
  await tested.last.send("4");
  await tested.last.end();
  expect(texts(chats).at(-1)).toBe("assistant: 4");
  expect(tested.last.body.messages).toEqual(first.messages);
  expect(tested.last.body.seed).not.toBe(first.seed);
  // A reply in the middle is repeated without what came behind it.
  chats.regenerate(replyAt(chats, 1));
  await settled();
  expect(tested.last.body.messages).toEqual([{ role: "user", content: "one" }]);
  await tested.last.end();
  expect(texts(chats)).toEqual(["user: one", "assistant: "]);
  const two = chats.open.value.messages.find(({ role, ...m }) => "text" in m && m.text === "two")!;
  chats.showBranch(two.id);
  expect(texts(chats)).toEqual(["user: one", "assistant: 1", "user: two", "assistant: 2"]);
});

test("the first message can be edited too, and a seed that is set holds", async () => {
  const tested = new TestChats();
  const { chats } = tested;
  await tested.turn("one", "1");
  chats.setSettings({ ...plainSettings, seed: 5 });
  chats.edit(userAt(chats, 0), "uno");
  await settled();
  expect(tested.last.body).toMatchObject({ seed: 5, messages: [{ content: "uno" }] });
  await tested.last.end();
  expect(texts(chats)).toEqual(["user: uno", "assistant: "]);
});

test("results of calls go back in their order", async () => {
  const tested = new TestChats();
  const { chats } = tested;
  await tested.turn("one", "1");
  const calls = ["a", "b"].map((name) => ({ id: `call_${name}`, name, arguments: "{}" }));
  chats.answerCalls({ ...replyAt(chats, 1), toolCalls: calls }, ["A"]);
  await settled();
  expect(tested.last.body.messages.slice(-2)).toEqual([
    { role: "tool", tool_call_id: "call_a", content: "A" },
    { role: "tool", tool_call_id: "call_b", content: "" },
  ]);
  await tested.last.end();
  expect(shown(chats).map(({ role }) => role)).toEqual([
    ...["user", "assistant", "tool", "tool", "assistant"],
  ]);
});

test("a refusal stands in the reply's place, and a missing key is asked for", async () => {
  const tested = new TestChats();
  const { chats, connection } = tested;
  tested.refusal = () => Response.json({ error: { message: "Full." } }, { status: 429 });
  chats.send("Hi");
  await settled();
  expect(replyAt(chats, 1)).toMatchObject({ text: "", ending: "failed", error: "Full." });
  expect(connection.wantsKey.value).toBe(false);
  tested.refusal = () => Response.json({ error: { message: "Key?" } }, { status: 401 });
  chats.regenerate(replyAt(chats, 1));
  await settled();
  expect(replyAt(chats, 1).error).toBe("Key?");
  expect(connection.wantsKey.value).toBe(true);
});

test("a connection that breaks keeps what came", async () => {
  const tested = new TestChats();
  tested.chats.send("Hi");
  await settled();
  await tested.last.send("half");
  await tested.last.fail();
  expect(replyAt(tested.chats, 1)).toMatchObject({ text: "half", ending: "failed" });
});

test("replies go on while another conversation is open", async () => {
  const tested = new TestChats();
  const { chats } = tested;
  chats.send("first");
  const { id } = chats.open.value;
  await settled();
  const [asked] = tested.asked;
  chats.startNew();
  await tested.turn("second", "2");
  await asked!.send("1");
  expect(texts(chats)).toEqual(["user: second", "assistant: 2"]);
  await chats.show(id);
  expect(texts(chats)).toEqual(["user: first", "assistant: "]);
  await chats.rename(id, "renamed");
  await asked!.end();
  expect(texts(chats)).toEqual(["user: first", "assistant: 1"]);
  expect(await tested.store.get(id)).toMatchObject({ title: "renamed" });
  expect(await chats.show("unknown")).toBe(false);
});

test("what is deleted while it is written stays deleted", async () => {
  const tested = new TestChats();
  const { chats, store } = tested;
  chats.send("Hi");
  const { id } = chats.open.value;
  await settled();
  await chats.remove(id);
  await settled();
  expect(tested.last.signal.aborted).toBe(true);
  expect(chats.library.list.value).toEqual([]);
  expect(await store.get(id)).toBeNull();
  expect(chats.open.value.messages).toEqual([]);
});

test("leaving the page is no failure", async () => {
  const tested = new TestChats();
  tested.chats.send("Hi");
  await settled();
  await tested.last.send("half");
  tested.chats.leave();
  await settled();
  expect(replyAt(tested.chats, 1)).toMatchObject({ text: "half", ending: "stopped" });
});

test("settings hold for the conversation, and for those that begin", async () => {
  const tested = new TestChats();
  const { chats } = tested;
  await tested.turn("one", "1");
  const { id } = chats.open.value;
  chats.setSettings({ ...plainSettings, temperature: 0.5 });
  chats.startNew();
  chats.setSettings({ ...plainSettings, temperature: 1 });
  expect(chats.open.value.settings.temperature).toBe(1);
  await tested.turn("two", "2");
  expect(tested.last.body["temperature"]).toBe(1);
  await chats.show(id);
  expect(chats.open.value.settings.temperature).toBe(0.5);
});

test("exports everything, and imports what is new", async () => {
  const from = new TestChats();
  await from.turn("one", "1");
  from.chats.startNew();
  from.clock.seconds++;
  await from.turn("two", "2");
  const file = (await from.chats.exported()).join("");
  const to = new TestChats();
  expect(await to.chats.import(file)).toBe(2);
  expect(to.chats.library.list.value).toEqual(from.chats.library.list.value);
  expect(JSON.parse((await to.chats.exported()).join(""))).toEqual(JSON.parse(file));
  expect(await to.chats.import(file)).toBe(0);
  // One has gone on since: the file's is older.
  to.clock.seconds = 500;
  await to.chats.show(to.chats.library.list.value[0]!.id);
  await to.turn("three", "3");
  expect(await to.chats.import(file)).toBe(0);
  expect(to.chats.open.value.messages).toHaveLength(4);
  await expect(to.chats.import("{}")).rejects.toThrow("doesn't hold");
});

test("what another tab changed is read", async () => {
  const tested = new TestChats();
  const { chats, store } = tested;
  await tested.turn("one", "1");
  const mine = chats.open.value;
  await store.put({ ...mine, title: "theirs", updatedSeconds: 200 });
  await chats.refresh();
  expect(chats.open.value.title).toBe("theirs");
  expect(chats.library.list.value).toMatchObject([{ title: "theirs" }]);
});

test("a full disk is told, and the conversation goes on", async () => {
  const tested = new TestChats();
  tested.store.put = () => Promise.reject(new DOMException("full", "QuotaExceededError"));
  await tested.turn("one", "1");
  expect(tested.chats.library.notice.value).toContain("no room");
  expect(texts(tested.chats)).toEqual(["user: one", "assistant: 1"]);
});
