import fc from "fast-check";
import { expect, test } from "vitest";
import type { TokenId } from "../ids.ts";
import { Merges } from "./merges.ts";
import { WordMerge } from "./word-merge.ts";

/** Left, right, and what they become. */
type Merge = readonly [left: TokenId, right: TokenId, merged: TokenId];

const byteIds = Int32Array.from({ length: 256 }, (_, byte) => byte);

function mergesOf(list: readonly Merge[]): Merges {
  const merges = new Merges(list.length);
  for (const [rank, [left, right, merged]] of list.entries()) merges.set(left, right, rank, merged);
  return merges;
}

function merged(list: readonly Merge[], bytes: readonly number[], steps: number): TokenId[] {
  const word = new WordMerge(mergesOf(list), byteIds, bytes.length);
  word.load(Uint8Array.from(bytes), bytes.length);
  while (!word.run(steps));
  const ids: TokenId[] = [];
  word.write(ids);
  return ids;
}

/** The definition: again and again, the leftmost pair of the lowest rank. */
function mergedPlainly(list: readonly Merge[], bytes: readonly number[]): TokenId[] {
  const ids = [...bytes];
  for (;;) {
    const ranks = ids.map((id, at) =>
      list.findLastIndex(([left, right]) => left === id && right === ids[at + 1]),
    );
    const least = Math.min(...ranks.filter((rank) => rank >= 0));
    if (least === Number.POSITIVE_INFINITY) return ids;
    ids.splice(ranks.indexOf(least), 2, list[least]![2]);
  }
}

/** Merges in any order, of few tokens, so that many of them meet. */
const anyMerges = fc.array(fc.tuple(fc.nat(7), fc.nat(7), fc.nat(7)), { maxLength: 20 });
const anyBytes = fc.array(fc.nat(3), { maxLength: 40 });

test("a word's tokens are those of the definition, in steps of any size", () => {
  fc.assert(
    fc.property(anyMerges, anyBytes, fc.integer({ min: 1, max: 9 }), (list, bytes, steps) => {
      const expected = mergedPlainly(list, bytes);
      expect(merged(list, bytes, Number.POSITIVE_INFINITY)).toEqual(expected);
      expect(merged(list, bytes, steps)).toEqual(expected);
    }),
    { numRuns: 2000 },
  );
});

test("equal ranks go from left to right", () => {
  expect(merged([[0, 0, 4]], [0, 0, 0], 99)).toEqual([4, 0]);
});

test("the same memory serves one word after the other", () => {
  const word = new WordMerge(mergesOf([[0, 1, 4]]), byteIds, 8);
  const ids: TokenId[] = [];
  for (const bytes of [[0, 1, 0, 1], [1], [0, 1, 1]]) {
    word.load(Uint8Array.from(bytes), bytes.length);
    expect(word.run(100)).toBe(true);
    word.write(ids);
  }
  expect(ids).toEqual([4, 4, 1, 4, 1]);
});

test("as many merges as there are pairs", () => {
  const merges = new Merges(90_000);
  for (let left = 0; left < 300; left++) {
    for (let right = 0; right < 300; right++) merges.set(left, right, left * 300 + right, right);
  }
  for (const [left, right] of [
    [0, 0],
    [299, 299],
    [17, 203],
  ] as const) {
    const place = merges.find(left, right);
    expect([merges.rank(place), merges.merged(place)]).toEqual([left * 300 + right, right]);
  }
  expect(merges.find(300, 0)).toBe(-1);
});
