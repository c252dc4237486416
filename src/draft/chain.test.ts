import { describe, expect, it, test } from "vitest";
import { KeyedNoise } from "../sampling/keyed.ts";
import { chainDrafts } from "./chain.ts";
import { goldenBlock, goldenIsThere, goldenNames } from "./golden.cases.ts";
import { type Codebooks, edgeScores, type Lattice } from "./lattice.ts";
import type { DraftPoint } from "./scores.ts";

const greedy = { temperature: 0, topK: 0, topP: 1, minP: 0, seed: 7n };
const point: DraftPoint = { anchor: 0, position: 10, sampling: greedy };
const row = (ids: number[], logits: number[]) => ({
  ids: Int32Array.from(ids),
  logits: Float32Array.from(logits),
});

/** Rank 1: token t expects t after it, and is worth 10 + t as a successor. */
const codebooks: Codebooks = {
  rank: 1,
  predecessor: (id) => Float32Array.of(id),
  successor: (id) => Float32Array.of(10 + id),
};

describe.skipIf(!goldenIsThere)("on the reference drafter's first blocks", () => {
  it.each(goldenNames)("takes the reference selector's path: %s", async (name) => {
    const { lattice, codebooks: books, point: start, drafts, firstRow } = await goldenBlock(name);
    expect(Array.from(lattice.rows[0]!.ids).sort((a, b) => a - b)).toEqual(firstRow);
    expect(chainDrafts(lattice, books, start, 7)).toEqual(drafts);
    expect(chainDrafts(lattice, books, start, 3)).toEqual(drafts.slice(0, 3));
  });

  // The first blocks are so sure that no edge turns them; these are numpy's, from the same tensors.
  it.each([
    ["copy", [3.34776, 2.63494, 2.06138, -0.94108]],
    ["story", [10.46583, -3.27232, -3.36732, -2.42227]],
  ])("scores neighbours as the reference selector does: %s", async (name, expected) => {
    const { lattice, codebooks: books, point: start } = await goldenBlock(name);
    const query = lattice.queries!.subarray(0, books.rank);
    const edges = edgeScores(books, query, start.anchor, lattice.rows[0]!.ids.subarray(0, 4));
    for (const [at, edge] of edges.entries()) expect(edge).toBeCloseTo(expected[at]!, 3);
  });
});

test("without queries each row's first candidate is taken", () => {
  const rows = [row([5, 2], [3, 1]), row([9, 4], [2, 2])];
  expect(chainDrafts({ rows, queries: null }, null, point, 15)).toEqual([5, 4]);
});

test("the token that was taken scores the next row, by that row's query", () => {
  // From anchor 0 nothing has an edge. 2 adds 2·0.5·(10 + c): 11 for 1, 13 for 3.
  const lattice: Lattice = {
    rows: [row([2, 6], [1, 0.5]), row([1, 3], [5, 3.5])],
    queries: Float32Array.of(100, 0.5),
  };
  expect(chainDrafts(lattice, codebooks, point, 2)).toEqual([2, 3]);
  expect(
    chainDrafts({ ...lattice, queries: Float32Array.of(100, 0) }, codebooks, point, 2),
  ).toEqual([2, 1]);
});

test("the lower id wins among equal sums, whatever their logits", () => {
  // 4 · 0.25 · (10 + c) = 10 + c: 7 + 15 equals 9 + 13.
  const lattice = { rows: [row([3, 5], [9, 7])], queries: Float32Array.of(0.25) };
  expect(chainDrafts(lattice, codebooks, { ...point, anchor: 4 }, 1)).toEqual([3]);
  const other = { rows: [row([5, 3], [8, 10])], queries: Float32Array.of(0.25) };
  expect(chainDrafts(other, codebooks, { ...point, anchor: 4 }, 1)).toEqual([3]);
});

test("the draw's noise at each position is added where a token will be drawn", () => {
  const ids = [3, 8, 1, 12];
  const logits = [2, 1.5, 1, 0.5];
  const lattice = {
    rows: [row(ids, logits), row(ids, logits)],
    queries: Float32Array.of(0.02, 0.04),
  };
  const seen = new Set<number>();
  for (let seed = 0n; seed < 100n; seed++) {
    const sampling = { ...greedy, temperature: 0.5, seed };
    const found = chainDrafts(lattice, codebooks, { anchor: 2, position: 40, sampling }, 2);
    let previous = 2;
    found.forEach((draft, at) => {
      const noise = new KeyedNoise(seed, 40 + at);
      const scores = ids.map((id, i) => {
        const edge = previous * lattice.queries[at]! * (10 + id);
        return (logits[i]! + edge) / 0.5 + 0.8 * noise.gumbel(id);
      });
      expect(draft).toBe(ids[scores.indexOf(Math.max(...scores))]);
      previous = draft;
      seen.add(draft);
    });
  }
  expect(seen.size).toBe(4);
});

test.each([
  ["top_k", { topK: 2 }],
  ["top_p", { topP: 0.8 }],
  ["min_p", { minP: Math.exp(-0.6) }],
  ["top_p of what top_k left", { topK: 2, topP: 0.8 }],
])("what %s cuts is never drafted", (_, cut) => {
  // Shares of the four: 0.455, 0.276, 0.167, 0.102.
  const lattice = { rows: [row([3, 8, 1, 12], [1, 0.5, 0, -0.5])], queries: null };
  const draftsOf = (changes: object) =>
    new Set(
      Array.from({ length: 300 }, (_, position) => {
        const sampling = { ...greedy, temperature: 1, ...changes };
        return chainDrafts(lattice, null, { anchor: 0, position, sampling }, 1)[0]!;
      }),
    );
  expect(draftsOf({})).toEqual(new Set([3, 8, 1, 12]));
  const kept = "topP" in cut && !("topK" in cut) ? [3, 8, 1] : [3, 8];
  expect(draftsOf(cut)).toEqual(new Set(kept));
});

test("a drafter that isn't finite still names its candidates", () => {
  const rows = [row([5, 2], [Number.NaN, Number.NaN])];
  expect(chainDrafts({ rows, queries: null }, null, point, 1)).toEqual([5]);
});

test("queries without codebooks, and the other way round, are refused", () => {
  const rows = [row([5, 2], [3, 1])];
  expect(() => chainDrafts({ rows, queries: Float32Array.of(1) }, null, point, 1)).toThrow(
    /query values/,
  );
  expect(() => chainDrafts({ rows, queries: null }, codebooks, point, 1)).toThrow(/query values/);
});

test("a walk is cut where it is told to, by the chances of the path so far", () => {
  const rows = [
    row([0, 1], [Math.log(3), 0]),
    row([0, 1, 2], [Math.log(8), 0, 0]),
    row([0, 1, 2, 3], [0, 0, 0, 0]),
  ];
  let seen: readonly number[] = [];
  const worth = (chances: readonly number[]) => {
    seen = chances;
    return 2;
  };
  expect(chainDrafts({ rows, queries: null }, null, point, 3, worth)).toEqual([0, 0]);
  const expected = [0.75, 0.75 * 0.8, 0.75 * 0.8 * 0.25];
  for (const [at, chance] of seen.entries()) expect(chance).toBeCloseTo(expected[at]!, 6);
});
