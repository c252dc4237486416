import { expect, test } from "vitest";
import { EncodeMemo } from "./encode-memo.ts";

/** Which of some pieces are remembered. */
const known = (memo: EncodeMemo, ...pieces: string[]) =>
  pieces.filter((piece) => memo.idsOf(piece) !== undefined);

test("what was remembered first stays", () => {
  const memo = new EncodeMemo();
  expect(memo.idsOf("a")).toBeUndefined();
  memo.remember("a", [1, 2]);
  memo.remember("a", [3]);
  memo.remember("", []);
  expect(memo.idsOf("a")).toEqual([1, 2]);
  expect(memo.idsOf("")).toEqual([]);
});

test("lone surrogates are kept apart", () => {
  const memo = new EncodeMemo();
  memo.remember("\ud800", [1]);
  memo.remember("\ufffd", [2]);
  expect(memo.idsOf("\ud800")).toEqual([1]);
});

test("the piece used longest ago is forgotten first", () => {
  const memo = new EncodeMemo(2 * (10 + 64));
  const [a, b, c] = ["a".repeat(10), "b".repeat(10), "c".repeat(10)] as const;
  memo.remember(a, []);
  memo.remember(b, []);
  memo.idsOf(a);
  memo.remember(c, []);
  expect(known(memo, a, b, c)).toEqual([a, c]);
});

test("a long piece pushes out as many as it needs, one that is too long none", () => {
  const memo = new EncodeMemo(300);
  for (const piece of ["a", "b", "c", "d"]) memo.remember(piece, []);
  memo.remember("x".repeat(300 - 64 + 1), []);
  const long = "y".repeat(100);
  expect(known(memo, "a", "b", "c", "d")).toEqual(["a", "b", "c", "d"]);
  memo.remember(long, []);
  expect(known(memo, "a", "b", "c", "d", long)).toEqual(["c", "d", long]);
});

test("pieces remembered twice count once", () => {
  const memo = new EncodeMemo(3 * (1 + 64));
  memo.remember("a", []);
  for (let time = 0; time < 9; time++) memo.remember("b", []);
  memo.remember("c", []);
  expect(known(memo, "a", "b", "c")).toEqual(["a", "b", "c"]);
});
