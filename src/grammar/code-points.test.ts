import { expect, test } from "vitest";
import {
  type CodeSet,
  codeSet,
  codesOf,
  common,
  complement,
  utf8Of,
  without,
} from "./code-points.ts";
import { Chance } from "./grammar.cases.ts";

const has = (set: CodeSet, code: number): boolean =>
  set.some(([first, last]) => first <= code && code <= last);

test("a set's ranges are in order, apart, and without surrogates", () => {
  const set = codeSet([
    [0x61, 0x63],
    [0x41, 0x41],
    [0x64, 0x66],
    [0xd000, 0xe001],
    [5, 4],
  ]);
  expect(set).toEqual([
    [0x41, 0x41],
    [0x61, 0x66],
    [0xd000, 0xd7ff],
    [0xe000, 0xe001],
  ]);
  expect(complement(complement(set))).toEqual(set);
  expect(complement(codesOf(""))).toEqual([
    [0, 0xd7ff],
    [0xe000, 0x10ffff],
  ]);
});

test("sets are taken from one another", () => {
  const letters = codeSet([[0x61, 0x7a]]);
  expect(without(letters, codesOf("cz"))).toEqual([
    [0x61, 0x62],
    [0x64, 0x79],
  ]);
  expect(common(letters, codesOf("AbZy"))).toEqual(codesOf("by"));
});

test("byte ranges are those of the set's characters and of no others", () => {
  const chance = new Chance(7);
  for (let round = 0; round < 40; round++) {
    const edges = [0, 0x7f, 0x80, 0x7ff, 0x800, 0xffff, 0x10000, 0x10ffff];
    const code = () => (chance.below(2) ? chance.pick(edges) : chance.below(0x110000));
    const ranges = Array.from({ length: 1 + chance.below(3) }, () => {
      const [a, b] = [code(), code()];
      return [Math.min(a, b), Math.max(a, b)] as const;
    });
    const set = codeSet(ranges);
    const sequences = utf8Of(set);
    const near = set.flatMap(([first, last]) => [first - 1, first, last, last + 1]);
    for (const each of [...near, ...edges, ...Array.from({ length: 50 }, code)]) {
      if (each < 0 || each > 0x10ffff || (each >= 0xd800 && each <= 0xdfff)) continue;
      const bytes = new TextEncoder().encode(String.fromCodePoint(each));
      const found = sequences.filter(
        (ranges) =>
          ranges.length === bytes.length &&
          ranges.every(([first, last], at) => first <= bytes[at]! && bytes[at]! <= last),
      );
      expect(found.length, each.toString(16)).toBe(has(set, each) ? 1 : 0);
    }
  }
});
