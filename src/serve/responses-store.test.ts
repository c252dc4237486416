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
const stored = (id: string, text = "") => ({
  response: { id, output: [message(text)] },
  input: [message("asked")],
});
const bytesOf = ({ response, input }: ReturnType<typeof stored>) =>
  JSON.stringify(response).length + JSON.stringify(input).length;
const has = (store: ResponseStore, id: string) => {
  try {
    return store.get(id).response.id === id;
  } catch {
    return false;
  }
};

test("a conversation is what a response answered, and the response", () => {
  const store = new ResponseStore();
  store.add(stored("a", "said"));
  expect(store.get("a")).toMatchObject(stored("a", "said"));
  expect(store.conversation("a")).toEqual([message("asked"), message("said")]);
});

test("what is not there is not found", () => {
  const store = new ResponseStore();
  const message = 'No response "a" is stored here.';
  const ofPath = { status: 404, code: "response_not_found", param: "response_id", message };
  expect(() => store.get("a")).toThrow(expect.objectContaining(ofPath));
  expect(() => store.delete("a")).toThrow(expect.objectContaining(ofPath));
  const ofField = { code: "previous_response_not_found", param: "previous_response_id" };
  expect(() => store.conversation("a")).toThrow(expect.objectContaining({ ...ofPath, ...ofField }));
});

test("the newest responses stay", () => {
  const store = new ResponseStore(2);
  for (const id of ["a", "b", "c"]) store.add(stored(id));
  expect(["a", "b", "c"].map((id) => has(store, id))).toEqual([false, true, true]);
  store.delete("b");
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
  store.delete("a");
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
