import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { KeyedNoise } from "../sampling/keyed.ts";
import { chainDrafts } from "./chain.ts";
import { goldenBlock, goldenIsThere, goldenNames } from "./golden.cases.ts";
import type { Codebooks, Lattice } from "./lattice.ts";
import type { Drafts } from "./proposal.ts";
import type { DraftPoint } from "./scores.ts";
import { treeDrafts } from "./tree.ts";

const rows = 3;
const width = 6;

/** Rank 1, of any token below 100. */
const books: Codebooks = {
  rank: 1,
  predecessor: (id) => Float32Array.of(((id * 37) % 11) - 5),
  successor: (id) => Float32Array.of(((id * 53) % 13) - 6),
};

/** Rows of six candidates in order, and queries. */
const lattices: fc.Arbitrary<Lattice> = fc
  .tuple(
    fc.array(
      fc.array(fc.tuple(fc.nat(99), fc.double({ min: -4, max: 4, noNaN: true })), {
        minLength: width,
        maxLength: width,
      }),
      { minLength: rows, maxLength: rows },
    ),
    fc.array(fc.double({ min: -0.2, max: 0.2, noNaN: true }), { minLength: rows, maxLength: rows }),
  )
  .map(([drawn, queries]) => ({
    rows: drawn.map((pairs) => {
      const logits = new Map(pairs.map(([id, logit]) => [id, Math.fround(logit)]));
      const ordered = [...logits].sort((a, b) => b[1] - a[1] || a[0] - b[0]);
      return {
        ids: Int32Array.from(ordered, ([id]) => id),
        logits: Float32Array.from(ordered, ([, logit]) => logit),
      };
    }),
    queries: Float32Array.from(queries),
  }));

const pointOf = (temperature: number): DraftPoint => ({
  anchor: 3,
  position: 20,
  sampling: { temperature, topK: 0, topP: 1, minP: 0, seed: 5n },
});

/** Every path with its log chance, from the formula, each step among the four best after its past. */
function allPaths(lattice: Lattice, temperature: number): Map<string, number> {
  const paths = new Map<string, number>();
  const softening = temperature === 0 ? 1 : 1.5;
  const walk = (path: readonly number[], value: number) => {
    const at = path.length;
    const row = lattice.rows[at];
    if (!row) return;
    const previous = path.at(-1) ?? 3;
    const noise = new KeyedNoise(5n, 20 + at);
    const scores = Array.from(row.ids, (id, i) => {
      const edge =
        books.predecessor(previous)[0]! * lattice.queries![at]! * books.successor(id)[0]!;
      const score = row.logits[i]! + edge;
      return temperature === 0 ? score : score / temperature + 0.8 * noise.gumbel(id);
    });
    const total = Math.log(scores.reduce((sum, score) => sum + Math.exp(score / softening), 0));
    const steps = Array.from(row.ids, (id, i) => ({ id, score: scores[i]! }));
    steps.sort((a, b) => b.score - a.score || a.id - b.id);
    for (const { id, score } of steps.slice(0, 4)) {
      const sum = value + score / softening - total;
      paths.set([...path, id].join(), sum);
      walk([...path, id], sum);
    }
  };
  walk([], 0);
  return paths;
}

/** Each node as its path from the pending token. */
function pathsOf({ ids, parents }: Drafts): string[] {
  const paths: string[] = [];
  ids.forEach((id, at) => {
    const parent = parents ? parents[at]! : at - 1;
    paths.push(parent < 0 ? `${id}` : `${paths[parent]},${id}`);
  });
  return paths;
}

test.each([0, 0.8])("holds the likeliest paths of all, temperature %f", (temperature) => {
  fc.assert(
    fc.property(lattices, fc.integer({ min: 0, max: 15 }), (lattice, nodes) => {
      const paths = pathsOf(treeDrafts(lattice, books, pointOf(temperature), nodes));
      const every = allPaths(lattice, temperature);
      expect(paths.length).toBe(Math.min(nodes, every.size));
      expect(new Set(paths).size).toBe(paths.length);
      const chances = paths.map((path) => every.get(path) ?? Number.NaN);
      const least = Math.min(...chances);
      const left = [...every].filter(([path]) => !paths.includes(path));
      // Equal chances may differ in their last bits here and there.
      for (const [, chance] of left) expect(chance).toBeLessThanOrEqual(least + 1e-9);
    }),
    { numRuns: 200 },
  );
});

test.each([0, 0.8])("lists the best children first, depth first, temperature %f", (temperature) => {
  fc.assert(
    fc.property(lattices, (lattice) => {
      const drafts = treeDrafts(lattice, books, pointOf(temperature), 15);
      const every = allPaths(lattice, temperature);
      const paths = pathsOf(drafts);
      paths.forEach((path, at) => {
        const parent = path.split(",").slice(0, -1).join();
        const before = paths.slice(0, at);
        // The node before is the parent, or lies under the parent: nobody comes back to a subtree.
        const inside = at === 0 || parent === "" || `${before.at(-1)},`.startsWith(`${parent},`);
        expect(inside).toBe(true);
        const siblings = before.filter((other) => {
          return other.split(",").slice(0, -1).join() === parent;
        });
        for (const sibling of siblings) {
          expect(every.get(sibling)!).toBeGreaterThanOrEqual(every.get(path)! - 1e-9);
        }
      });
    }),
    { numRuns: 100 },
  );
});

test.each([0, 0.8])("begins with the chain's path, temperature %f", (temperature) => {
  fc.assert(
    fc.property(lattices, fc.integer({ min: 1, max: 15 }), (lattice, nodes) => {
      const chain = chainDrafts(lattice, books, pointOf(temperature), rows);
      const { ids, parents } = treeDrafts(lattice, books, pointOf(temperature), nodes);
      const found = ids.findIndex((_, at) => parents !== null && parents[at] !== at - 1);
      const first = found < 0 ? ids : ids.slice(0, found);
      expect(first.length).toBeGreaterThan(0);
      expect(chain.slice(0, first.length)).toEqual(first);
    }),
    { numRuns: 200 },
  );
});

test("equal chances go to the older parent, then to the lower id", () => {
  const even = { ids: Int32Array.of(4, 6), logits: Float32Array.of(1, 1) };
  const lattice = { rows: [even, even], queries: null };
  expect(treeDrafts(lattice, null, pointOf(0), 4)).toEqual({
    ids: [4, 4, 6, 6],
    parents: [-1, 0, 0, -1],
  });
  expect(treeDrafts(lattice, null, pointOf(0), 5)).toEqual({
    ids: [4, 4, 6, 6, 4],
    parents: [-1, 0, 0, -1, 3],
  });
});

test("a tree without branches is a chain", () => {
  const sure = { ids: Int32Array.of(4, 6), logits: Float32Array.of(90, 1) };
  const drafts = treeDrafts({ rows: [sure, sure], queries: null }, null, pointOf(0), 2);
  expect(drafts).toEqual({ ids: [4, 4], parents: null });
});

test("what top_k cuts has no node, and no token more than four children", () => {
  const ids = Int32Array.of(1, 2, 3, 4, 5, 6);
  const lattice = { rows: [{ ids, logits: Float32Array.of(6, 5, 4, 3, 2, 1) }], queries: null };
  const { sampling } = pointOf(1);
  const cut = { ...pointOf(1), sampling: { ...sampling, topK: 3 } };
  expect([...treeDrafts(lattice, null, cut, 15).ids].sort()).toEqual([1, 2, 3]);
  expect(treeDrafts(lattice, null, pointOf(0), 15).ids).toEqual([1, 2, 3, 4]);
});

test("a window's rows bound the tree", () => {
  const lattice = { rows: [], queries: null };
  expect(treeDrafts(lattice, null, pointOf(0), 15).ids).toEqual([]);
  expect(() => treeDrafts(lattice, null, pointOf(0), 16)).toThrow(/16 nodes/);
});

describe.skipIf(!goldenIsThere)("on the reference drafter's first blocks", () => {
  it.each(goldenNames)("begins with the reference's path: %s", async (name) => {
    const { lattice, codebooks, point, drafts } = await goldenBlock(name);
    const { ids, parents } = treeDrafts(lattice, codebooks, point, 15);
    expect(ids.length).toBe(15);
    const branch = parents?.findIndex((parent, at) => parent !== at - 1) ?? 15;
    expect(branch).toBeGreaterThan(1);
    expect(ids.slice(0, Math.min(7, branch))).toEqual(drafts.slice(0, branch));
  });
});
