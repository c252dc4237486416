import { expect, test } from "vitest";
import { storedResponseBytesMax, storedResponsesMax } from "../limits.ts";
import type { ResponseItem } from "./responses-items.ts";
import { ResponseStore } from "./responses-store.ts";

const message = (text: string): ResponseItem => ({
  type: "message",
  id: "msg_1",
  status: "completed",
  role: "assistant",
  content: [{ type: "output_text", text, annotations: [], logprobs: [] }],
});
const stored = (id: string, text = "", owner: string | null = null) => ({
  response: { id, output: [message(text)] },
  input: [message("asked")],
  owner,
});
const bytesOf = ({ response, input }: ReturnType<typeof stored>) =>
  JSON.stringify(response).length + JSON.stringify(input).length;
const has = (store: ResponseStore, id: string, owner: string | null = null) => {
  try {
    return store.get(id, owner).response.id === id;
  } catch {
    return false;
  }
};

test("a conversation is what a response answered, and the response", () => {
  const store = new ResponseStore();
  store.add(stored("a", "said"));
  expect(store.get("a", null)).toMatchObject(stored("a", "said"));
  expect(store.conversation("a", null)).toEqual([message("asked"), message("said")]);
});

test("what is not there is not found", () => {
  const store = new ResponseStore();
  const message = 'No response "a" is stored here.';
  const ofPath = { status: 404, code: "response_not_found", param: "response_id", message };
  expect(() => store.get("a", null)).toThrow(expect.objectContaining(ofPath));
  expect(() => store.delete("a", null)).toThrow(expect.objectContaining(ofPath));
  const ofField = { code: "previous_response_not_found", param: "previous_response_id" };
  expect(() => store.conversation("a", null)).toThrow(
    expect.objectContaining({ ...ofPath, ...ofField }),
  );
});

test("a response belongs to whoever asked for it", () => {
  const store = new ResponseStore();
  const owners = [null, "ann", "ben"];
  for (const owner of owners) store.add(stored(`of ${owner}`, "", owner));
  for (const owner of owners) {
    const id = `of ${owner}`;
    for (const other of owners.filter((each) => each !== owner)) {
      const status = expect.objectContaining({ status: 404 });
      expect(() => store.get(id, other)).toThrow(status);
      expect(() => store.conversation(id, other)).toThrow(status);
      expect(() => store.delete(id, other)).toThrow(status);
    }
    expect(has(store, id, owner)).toBe(true);
    store.delete(id, owner);
    expect(has(store, id, owner)).toBe(false);
  }
});

test("the newest responses stay", () => {
  const store = new ResponseStore(2);
  for (const id of ["a", "b", "c"]) store.add(stored(id));
  expect(["a", "b", "c"].map((id) => has(store, id))).toEqual([false, true, true]);
  store.delete("b", null);
  store.add(stored("d"));
  expect(["b", "c", "d"].map((id) => has(store, id))).toEqual([false, true, true]);
});

test("bytes are bounded to the last one", () => {
  const two = bytesOf(stored("a", "xx")) + bytesOf(stored("b", "yy"));
  for (const [room, kept] of [
    [0, true],
    [-1, false],
  ] as const) {
    const store = new ResponseStore(9, two + room);
    store.add(stored("a", "xx"));
    store.add(stored("b", "yy"));
    expect([has(store, "a"), has(store, "b")]).toEqual([kept, true]);
  }
  const store = new ResponseStore(9, two);
  store.add(stored("a", "xx"));
  store.add(stored("b", "yy"));
  store.delete("a", null);
  store.add(stored("c", "zz"));
  expect(["b", "c"].map((id) => has(store, id))).toEqual([true, true]);
});

test("one that takes more than all may is not kept, and drops no other", () => {
  const store = new ResponseStore(9, 400);
  store.add(stored("a"));
  store.add(stored("b", "x".repeat(400)));
  expect([has(store, "a"), has(store, "b")]).toEqual([true, false]);
});

test("unless told otherwise, 1,024 responses and 256 MiB", () => {
  expect([storedResponsesMax, storedResponseBytesMax]).toEqual([1024, 256 * 2 ** 20]);
  const store = new ResponseStore();
  for (let index = 0; index <= storedResponsesMax; index++) store.add(stored(String(index)));
  expect(["0", "1", "1024"].map((id) => has(store, id))).toEqual([false, true, true]);
});
