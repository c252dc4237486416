import { expect, test } from "vitest";
import { slotId, type TokenId } from "../ids.ts";
import { windowRowsMax } from "../limits.ts";
import { depthsOf, pathOf, planPass, type SegmentRequest } from "../model/plan.ts";
import type { Backend, PassResult, Snapshot } from "./backend.ts";
import {
  type BackendUnderTest,
  feed,
  generator,
  pagesOf,
  printOf,
  prompt,
  segment,
  sizes,
} from "./suite.cases.ts";

const wide = { ...sizes, drawsMax: 3 * windowRowsMax };
const draws: Partial<SegmentRequest> = { draw: "all", candidates: 0 };

/** A window's rows and their parents. */
interface Tree {
  readonly ids: readonly TokenId[];
  readonly parents: readonly number[];
}

/** Different tokens for different rows, so that a row that looks at a wrong one shows. */
const tree = (parents: readonly number[]): Tree => ({
  parents,
  ids: parents.map((_, row) => (row * 37 + 20) % 300),
});

const named: readonly (readonly [string, Tree])[] = [
  ["one row", tree([-1])],
  ["a chain that says so", tree([-1, 0, 1, 2, 3, 4])],
  ["siblings", tree([-1, ...new Array<number>(windowRowsMax - 1).fill(0)])],
  ["branches", tree([-1, 0, 1, 0, 3, 1, 5])],
  ["branches level by level", tree([-1, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8])],
  ["deep branches", tree([-1, 0, 1, 0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13])],
];

const part = (slot: number, start: number, { ids, parents }: Tree, keepLogits = true) =>
  segment(slot, start, ids, { ...draws, window: true, parents, keepLogits });

/** A tree in which the first rows of `path` hold its tokens, each at a random place behind its parent. */
function randomTree(random: () => number, rows: number, path: readonly TokenId[]) {
  const parents: number[] = [-1];
  const ids: TokenId[] = [path[0]!];
  const onPath = [0];
  while (parents.length < rows) {
    const row = parents.length;
    const goesOn = onPath.length < path.length && random() < 0.6;
    parents.push(goesOn ? onPath.at(-1)! : Math.floor(random() * row));
    ids.push(goesOn ? path[onPath.length]! : Math.floor(random() * 300));
    if (goesOn) onPath.push(row);
  }
  return { parents, ids, onPath };
}

/** What chains make of each row's path from a snapshot on. */
interface Paths {
  /** The last row's. */
  readonly draws: readonly PassResult["draws"][number][];
  /** The slot after it. */
  readonly prints: readonly string[];
  /** The slot after it and three more rows. */
  readonly later: readonly string[];
}

const followers: readonly TokenId[] = [201, 77, 140];

async function follow(backend: Backend, slot: number, at: number): Promise<string> {
  await backend.read(backend.verify(planPass([segment(slot, at, followers)])));
  return await printOf(backend, slot, at + followers.length);
}

async function chainsOf(
  backend: Backend,
  slot: number,
  from: Snapshot,
  { ids, parents }: Tree,
): Promise<Paths> {
  const drawn: Paths["draws"][number][] = [];
  const prints: string[] = [];
  const later: string[] = [];
  for (const row of ids.keys()) {
    backend.restore(slotId(slot), pagesOf(slot), from);
    const path = pathOf({ parents }, row).map((at) => ids[at]!);
    const plan = planPass([segment(slot, from.rows, path, { candidates: 0 })]);
    drawn.push(...(await backend.read(backend.verify(plan))).draws);
    const end = from.rows + path.length;
    prints.push(await printOf(backend, slot, end));
    later.push(await follow(backend, slot, end));
  }
  return { draws: drawn, prints, later };
}

async function startOf(backend: Backend, slot: number, rows: number): Promise<Snapshot> {
  backend.open(slotId(slot));
  await feed(backend, slot, prompt.slice(0, rows), 64);
  return await backend.save(slotId(slot), pagesOf(slot), rows);
}

/** Windows that are trees, and the keeps of their paths. */
export function treeCases(under: BackendUnderTest): void {
  const { name } = under;

  // The last ones' rows lie on both sides of a page's edge; 2 rows are fewer than the convolution sees.
  test.each([0, 2, 57, 62])(
    `${name}: each path of a tree after %i rows equals a chain`,
    { timeout: 240_000 },
    async (history) => {
      await using backend = await under.open(wide);
      const start = await startOf(backend, 0, history);
      const before = await printOf(backend, 0, history);
      for (const [kind, shape] of named) {
        const chains = await chainsOf(backend, 0, start, shape);
        const depths = depthsOf({ parents: shape.parents, rows: shape.ids.length });
        for (let row = -1; row < shape.ids.length; row++) {
          const label = `${kind}, row ${row}`;
          backend.restore(slotId(0), pagesOf(0), start);
          const handle = backend.verify(planPass([part(0, history, shape)]));
          const result = await backend.read(handle);
          if (row < 0) expect(result.draws, label).toEqual(chains.draws);
          backend.keep(handle, [row < 0 ? [] : pathOf(shape, row)]);
          const end = history + (row < 0 ? 0 : depths[row]! + 1);
          const expected = row < 0 ? before : chains.prints[row];
          expect(await printOf(backend, 0, end), label).toBe(expected);
          if (row >= 0) expect(await follow(backend, 0, end), label).toBe(chains.later[row]);
        }
      }
    },
  );

  test(`${name}: trees, a window and a chain share a pass`, { timeout: 240_000 }, async () => {
    await using backend = await under.open(wide);
    const history = [5, 60, 30];
    const starts: Snapshot[] = [];
    for (const [slot, rows] of history.entries()) starts.push(await startOf(backend, slot, rows));
    const trees = [named[4]![1], named[3]![1], tree([-1, 0, 1, 2])];
    const chains: Paths[] = [];
    for (const [slot, shape] of trees.entries()) {
      chains.push(await chainsOf(backend, slot, starts[slot]!, shape));
    }
    for (const [plainSlot, kept] of [
      [2, [11, 6, 3]],
      [2, [8, 2, 1]],
      [null, [5, 4, 2]],
    ] as const) {
      for (const slot of [0, 1, 2]) backend.restore(slotId(slot), pagesOf(slot), starts[slot]!);
      const segments = [1, 2, 0].map((slot) =>
        slot === plainSlot
          ? segment(slot, history[slot]!, trees[slot]!.ids, draws)
          : part(slot, history[slot]!, trees[slot]!),
      );
      const handle = backend.verify(planPass(segments));
      const result = await backend.read(handle);
      const windows = [1, 2, 0].filter((slot) => slot !== plainSlot);
      backend.keep(
        handle,
        windows.map((slot) => pathOf(trees[slot]!, kept[slot]!)),
      );
      const expected = [1, 2, 0].flatMap((slot) => chains[slot]!.draws);
      expect(result.draws).toEqual(expected);
      for (const slot of [0, 1, 2]) {
        const row = slot === plainSlot ? trees[slot]!.ids.length - 1 : kept[slot]!;
        const end = history[slot]! + pathOf(trees[slot]!, row).length;
        const label = `slot ${slot}, chain ${plainSlot}`;
        expect(await printOf(backend, slot, end), label).toBe(chains[slot]!.prints[row]);
      }
    }
  });

  test(`${name}: rounds of random trees end where a chain does`, { timeout: 240_000 }, async () => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    console.log(`${name}: random trees of seed ${seed}`);
    const random = generator(seed);
    await using backend = await under.open(wide);
    backend.open(slotId(0));
    backend.open(slotId(1));
    const chain = await feed(backend, 0, prompt, 64);
    for (let at = 0; at < prompt.length; ) {
      const rows = 1 + Math.floor(random() * windowRowsMax);
      const { onPath, ...shape } = randomTree(random, rows, prompt.slice(at));
      const handle = backend.verify(planPass([part(1, at, shape)]));
      const kept = onPath.slice(0, Math.floor(random() * (onPath.length + 1)));
      // Nothing waits for the pass: keep follows in order.
      backend.keep(handle, [kept]);
      at += kept.length;
    }
    expect(await printOf(backend, 1, prompt.length)).toBe(chain);
  });

  test(`${name}: a keep that leaves a tree's branch is refused`, async () => {
    await using backend = await under.open(wide);
    backend.open(slotId(0));
    const shape = tree([-1, 0, 0, 1, 2]);
    const handle = backend.verify(planPass([part(0, 0, shape)]));
    for (const path of [[1], [0, 3], [0, 1, 2], [0, 1, 4], [0, 2, 4, 5], [0, 0]]) {
      const label = `a keep of rows ${path.join(", ")} of a window of 5`;
      expect(() => backend.keep(handle, [path])).toThrow(label);
    }
    backend.keep(handle, [[0, 2, 4]]);
  });
}
