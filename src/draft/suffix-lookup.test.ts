import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { SuffixLookup } from "./suffix-lookup.ts";

function lookupOf(text: readonly number[]): SuffixLookup {
  const lookup = new SuffixLookup();
  for (const id of text) lookup.push(id);
  return lookup;
}

/** What the rule says, by trying every earlier place. */
function expected(text: readonly number[], most: number, least: number): number[] {
  let length = least - 1;
  let place = -1;
  for (let end = text.length - 2; end >= 0; end--) {
    let match = 0;
    while (match < 64 && match <= end && text[end - match] === text.at(-1 - match)) match++;
    if (match > length) {
      length = match;
      place = end;
    }
  }
  if (place < 0 || most < 2) return [];
  const grown = [...text];
  while (grown.length < text.length + Math.min(most, 15)) {
    grown.push(grown[place + 1 + grown.length - text.length]!);
  }
  return grown.slice(text.length);
}

/** Texts with repeats: random snippets, again and again. */
const texts = fc
  .array(fc.array(fc.nat(3), { minLength: 1, maxLength: 12 }), { minLength: 1, maxLength: 5 })
  .chain((snippets) =>
    fc
      .array(fc.nat(snippets.length - 1), { minLength: 1, maxLength: 40 })
      .map((order) => order.flatMap((which) => snippets[which]!)),
  );

test("proposes what followed the latest, longest match", () => {
  let proposals = 0;
  fc.assert(
    fc.property(texts, fc.nat(20), (text, most) => {
      const found = lookupOf(text).propose(most);
      expect(found).toEqual(expected(text, most, 8));
      if (found.length > 0) proposals++;
    }),
    { numRuns: 1000 },
  );
  expect(proposals).toBeGreaterThan(200);
});

test("goes on with a shorter match where a draft landed in the last round", () => {
  let shorter = 0;
  fc.assert(
    fc.property(texts, (text) => {
      const lookup = lookupOf(text);
      lookup.landed(15, 1);
      expect(lookup.propose(15)).toEqual(expected(text, 15, 6));
      if (expected(text, 15, 6).length > expected(text, 15, 8).length) shorter++;
      lookup.landed(15, 1);
      lookup.landed(15, 0);
      expect(lookup.propose(15)).toEqual(expected(text, 15, 8));
    }),
    { numRuns: 500 },
  );
  expect(shorter).toBeGreaterThan(20);
});

test("a round without a match ends the going on", () => {
  const lookup = lookupOf([1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6]);
  lookup.landed(15, 15);
  expect(lookup.propose(3)).toEqual([7, 8, 1]);
  lookup.push(99);
  expect(lookup.propose(3)).toEqual([]);
  for (const id of [1, 2, 3, 4, 5, 6]) lookup.push(id);
  expect(lookup.propose(3)).toEqual([]);
  lookup.push(7);
  lookup.push(8);
  expect(lookup.propose(3)).toEqual([1, 2, 3]);
});

test("a text that repeats itself is continued beyond its end", () => {
  const lookup = lookupOf(Array.from({ length: 12 }, (_, at) => at % 3));
  expect(lookup.propose(7)).toEqual([0, 1, 2, 0, 1, 2, 0]);
});

describe("silence", () => {
  const looping = Array.from({ length: 30 }, (_, at) => at % 5);

  it("lasts 16 rounds, after four proposals in a row of which nothing landed", () => {
    const lookup = lookupOf(looping);
    for (let miss = 0; miss < 4; miss++) {
      expect(lookup.propose(15).length).toBe(15);
      lookup.landed(15, 0);
    }
    for (let round = 0; round < 16; round++) expect(lookup.propose(15)).toEqual([]);
    expect(lookup.propose(15).length).toBe(15);
    for (let miss = 0; miss < 3; miss++) lookup.landed(15, 0);
    expect(lookup.propose(15).length).toBe(15);
  });

  it("does not come while something lands now and then", () => {
    const lookup = lookupOf(looping);
    for (let round = 0; round < 40; round++) {
      expect(lookup.propose(15).length).toBe(15);
      lookup.landed(15, round % 4 === 3 ? 1 : 0);
    }
  });
});

test("finds a match far back in a long text", () => {
  const text = Array.from({ length: 100_000 }, (_, at) => Math.imul(at, 2654435761) >>> 14);
  const lookup = lookupOf([...text, ...text.slice(500, 520)]);
  expect(lookup.propose(15)).toEqual(text.slice(520, 535));
});

test.each([
  [63, 1001],
  [64, 1002],
])("a later match of %i tokens beside an earlier one of 70", (tokens, expected) => {
  const text = Array.from({ length: 70 }, (_, at) => at);
  const lookup = lookupOf([999, ...text, 1001, 998, ...text.slice(-tokens), 1002, 997, ...text]);
  expect(lookup.propose(15)[0]).toBe(expected);
});

test("a phrase of thousands of places doesn't hide the latest of them", () => {
  const phrase = [1, 2, 3, 4, 5, 6];
  const text = Array.from({ length: 5000 }, (_, at) => [at + 100, ...phrase]).flat();
  const lookup = lookupOf(text);
  lookup.landed(15, 1);
  expect(lookup.propose(3)).toEqual([5099, 1, 2]);
});

test("nothing is proposed of nothing, or where more landed than were proposed", () => {
  expect(new SuffixLookup().propose(15)).toEqual([]);
  expect(() => new SuffixLookup().landed(2, 3)).toThrow(/3 of 2/);
});
