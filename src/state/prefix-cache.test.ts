import { expect, test } from "vitest";
import type { HeldState } from "../backend/backend.ts";
import type { TokenId } from "../ids.ts";
import type { PrefixKind } from "./cached-prefix.ts";
import { PagePool, PageTable } from "./kv-pages.ts";
import { PrefixCache } from "./prefix-cache.ts";

const stateBytes = 100;
const pageBytes = 10;

/** A cache over a pool, streams that use both, and what was evicted. */
function world(bytesMax: number, pages = 64) {
  const pool = new PagePool(pages);
  const evicted: string[] = [];
  const onEvict = async ({ kind, rows }: { kind: PrefixKind; rows: number }) => {
    evicted.push(`${kind} ${rows}`);
  };
  const cache = new PrefixCache({ pool, pageBytes, bytesMax, onEvict });
  let held = 0;
  const hold = (): HeldState => {
    held++;
    return {
      bytes: stateBytes,
      [Symbol.dispose]: () => {
        held--;
      },
    };
  };
  const add = async (
    ids: readonly TokenId[],
    kind: PrefixKind = "history",
    changes: { rows?: number; context?: boolean; proven?: boolean; table?: PageTable } = {},
  ) => {
    const { rows = ids.length, context = true, proven = false } = changes;
    const table = changes.table ?? new PageTable(pool);
    table.grow(rows);
    const prefix = { ids, rows, kind, context, proven, pages: table.pages };
    const fits = await cache.makeRoom(prefix, stateBytes);
    if (fits) cache.add(prefix, hold());
    if (!changes.table) table.release();
    return fits;
  };
  return { pool, cache, evicted, add, held: () => held };
}

const run = (from: number, count: number): TokenId[] =>
  Array.from({ length: count }, (_, at) => from + at);

test("the longest prefix that a prompt goes on from, token by token", async () => {
  const { cache, add } = world(10_000);
  const ids = run(0, 10);
  await add(ids, "history", { rows: 3 });
  await add(ids, "history", { rows: 7 });
  const rowsFor = (prompt: readonly TokenId[]) => cache.longest(prompt, false)?.rows ?? 0;
  expect(rowsFor(run(0, 10))).toBe(7);
  // A prompt's last token must be fed, or nothing would draw the next.
  expect(rowsFor(run(0, 7))).toBe(3);
  expect(rowsFor(run(0, 3))).toBe(0);
  expect(rowsFor([0, 1, 2, 99, 4, 5, 6, 7])).toBe(3);
  expect(rowsFor([99, 1, 2, 3])).toBe(0);
  expect(cache.missOf([99, 1], false)).toBe("no_match");
});

test("a drafting stream needs a state with its drafter's context", async () => {
  const { cache, add } = world(10_000);
  await add(run(0, 5), "history", { context: false });
  expect(cache.longest(run(0, 6), true)).toBeNull();
  expect(cache.missOf(run(0, 6), true)).toBe("no_drafter_context");
  expect(cache.longest(run(0, 6), false)?.rows).toBe(5);
  const same = { ids: run(0, 9), rows: 5 };
  expect(cache.touch({ ...same, context: true })).toBe(false);
  expect(cache.touch({ ...same, context: false })).toBe(true);
});

test("states of one conversation share its pages, and all is given back", async () => {
  const { pool, cache, add, held } = world(10_000);
  const ids = run(0, 200);
  const table = new PageTable(pool);
  await add(ids, "history", { rows: 130, table });
  await add(ids, "reply", { rows: 200, table });
  expect([cache.count, cache.bytes]).toEqual([2, 2 * stateBytes + 4 * pageBytes]);
  expect(cache.idlePages).toBe(0);
  expect(cache.pagesInUse(cache.longest(run(0, 150), false)!)).toBe(2);
  table.release();
  expect([pool.freeCount, cache.idlePages]).toEqual([60, 4]);
  await cache.freePages(61, null);
  // The older one shares all its pages: only with the second is one free.
  expect([cache.count, pool.freeCount, held()]).toEqual([0, 64, 0]);
});

test("keeps within its bytes, and refuses what alone is more", async () => {
  const { cache, add, evicted } = world(2 * (stateBytes + pageBytes));
  expect(await add(run(0, 20 * 64))).toBe(false);
  for (const from of [0, 100, 200]) await add(run(from, 5));
  expect([cache.count, cache.bytes]).toEqual([2, 220]);
  expect(evicted).toEqual(["history 5"]);
  expect(cache.longest(run(0, 6), false)).toBeNull();
  expect(cache.missOf(run(0, 6), false)).toBe("evicted");
  expect(cache.missOf([0, 1, 2], false)).toBe("no_match");
});

test("an unrelated request evicts its own, not what a conversation goes on from", async () => {
  const { cache, add, evicted } = world(3 * (stateBytes + pageBytes));
  await add(run(0, 5));
  cache.use(cache.longest(run(0, 9), false)!);
  await add(run(0, 9), "reply", { proven: true });
  for (let from = 100; from < 900; from += 100) await add(run(from, 5));
  expect(cache.longest(run(0, 6), false)?.rows).toBe(5);
  expect(cache.longest(run(0, 10), false)?.rows).toBe(9);
  expect(evicted).toHaveLength(7);
});

test("what everybody shares proves no conversation", async () => {
  const { cache, add } = world(2 * (stateBytes + pageBytes));
  await add(run(0, 5), "shared");
  cache.use(cache.longest(run(0, 6), false)!);
  await add(run(100, 5));
  await add(run(200, 5));
  expect(cache.longest(run(0, 6), false)).toBeNull();
});

test("a conversation leaves behind what is before its last turn's beginning", async () => {
  const { cache, add, evicted } = world(4 * (stateBytes + pageBytes));
  const ids = run(0, 60);
  await add(ids, "shared", { rows: 10, proven: true });
  await add(ids, "rewind", { rows: 20, proven: true });
  await add(ids, "reply", { rows: 30, proven: true });
  cache.supersede(ids, 40);
  await add(ids, "rewind", { rows: 40, proven: true });
  await add(ids, "reply", { rows: 50, proven: true });
  await add(ids, "reply", { rows: 60, proven: true });
  expect(evicted).toEqual(["rewind 20", "reply 30"]);
  // One that is used again has not been left behind.
  expect(cache.longest(run(0, 45), false)?.rows).toBe(40);
});

test("an entry that is about to be used is spared, though nothing else is left", async () => {
  const { pool, cache, add } = world(10_000, 4);
  await add(run(0, 130));
  await add(run(500, 60));
  const prefix = cache.longest(run(0, 150), false)!;
  await cache.freePages(1, prefix);
  expect([cache.count, pool.freeCount]).toEqual([1, 1]);
  await cache.freePages(2, prefix);
  expect(cache.count).toBe(1);
});

test("evicts nothing where that doesn't bring the pages, nor what streams use anyway", async () => {
  const { pool, cache, add, evicted } = world(10_000, 8);
  const table = new PageTable(pool);
  await add(run(0, 130), "history", { table });
  await add(run(500, 60));
  expect([pool.freeCount, cache.idlePages]).toEqual([4, 1]);
  await cache.freePages(6, null);
  expect(evicted).toEqual([]);
  await cache.freePages(5, null);
  expect(evicted).toEqual(["history 60"]);
  expect(cache.count).toBe(1);
  table.release();
});

test("forgets what one stream left, whatever equals it", async () => {
  const { cache, add, held } = world(10_000);
  const ids = run(0, 9);
  await add(ids, "history", { rows: 4 });
  await add(run(0, 9), "reply");
  cache.forget(ids);
  expect([cache.count, held()]).toEqual([1, 1]);
  cache.clear();
  expect([cache.count, cache.bytes, held()]).toEqual([0, 0, 0]);
});
