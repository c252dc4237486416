import { expect, test } from "vitest";
import { type OpenSizes, type SizeOptions, type Sizing, sizesToTry } from "./open-sizes.ts";

const mib = 2 ** 20;
const sizing: Sizing = {
  contextMax: 640,
  pageBytes: mib,
  promptCacheBytes: 8 * mib,
  knowsRoom: false,
  fits: null,
};

/** All sizes that are tried where none fits. */
async function all(options: SizeOptions, changes: Partial<Sizing> = {}): Promise<OpenSizes[]> {
  const found: OpenSizes[] = [];
  for await (const sizes of sizesToTry(options, { ...sizing, ...changes })) found.push(sizes);
  return found;
}

/** The first: what is opened where it fits. */
const first = async (options: SizeOptions, changes: Partial<Sizing> = {}) =>
  (await all(options, changes))[0]!;

/** Memory for so many pages, at a state's worth of `slotPages` for each slot. */
const room =
  (pages: number, slotPages = 0) =>
  async (sizes: OpenSizes) =>
    sizes.pages + slotPages * sizes.slots + sizes.promptCacheBytes / mib <= pages;

const contextTokens = 640;

test("eight whole contexts, then one for all to share, then fewer streams, then no cache", async () => {
  const tried = await all({ contextTokens });
  const told = tried.map(({ slots, pages, promptCacheBytes }) => [
    slots,
    pages,
    promptCacheBytes / mib,
  ]);
  const counts = [8, 4, 2, 1];
  expect(told).toEqual([
    ...counts.flatMap((slots) => [
      [slots, 10 * slots + 4, 8],
      [slots, 14, 8],
    ]),
    ...counts.flatMap((slots) => [
      [slots, 10 * slots, 0],
      [slots, 10, 0],
    ]),
  ]);
  expect(new Set(tried.map((sizes) => sizes.contextTokens))).toEqual(new Set([640]));
});

test("streams share what keys and values may take, and one context is always there", async () => {
  const options = { contextTokens, parallel: 6, promptCacheBytes: 0 };
  const most = await first({ ...options, kvBytes: 25 * mib });
  expect(most).toEqual({ contextTokens, slots: 6, pages: 25, promptCacheBytes: 0 });
  const least = await first({ ...options, kvBytes: 3 * mib });
  expect(least).toEqual({ contextTokens, slots: 6, pages: 10, promptCacheBytes: 0 });
});

test("what was asked for is tried or refused, never left out", async () => {
  const cached = await all({ contextTokens, parallel: 3, promptCacheBytes: 4 * mib });
  expect(cached.map(({ slots, promptCacheBytes }) => [slots, promptCacheBytes / mib])).toEqual([
    [3, 4],
    [3, 4],
  ]);
  const wide = await all({ contextTokens, parallel: 2, kvBytes: 15 * mib, promptCacheBytes: 0 });
  expect(wide.map(({ pages }) => pages)).toEqual([15]);
  await expect(all({ kvBytes: -1 })).rejects.toThrow(/kvBytes/);
  await expect(all({ promptCacheBytes: Number.NaN })).rejects.toThrow(/promptCacheBytes/);
});

const large: Partial<Sizing> = { contextMax: 262_144, knowsRoom: true };

test("a context that nobody asked for is all that the model supports, where it fits", async () => {
  const sizes = await first({}, { ...large, fits: room(100_000) });
  expect(sizes).toMatchObject({ contextTokens: 262_144, slots: 8, pages: 4096 + 4 });
  expect((await first({}, { ...large, contextMax: 640, fits: room(100) })).pages).toBe(84);
  // Not a multiple of a page's rows.
  expect(await first({}, { ...large, contextMax: 1000, fits: room(1000) })).toMatchObject({
    contextTokens: 1000,
    pages: 8 * 16 + 4,
  });
});

test("it is the largest that fits, to the page", async () => {
  const fits = room(1012);
  const sizes = await first({}, { ...large, fits });
  // Of 1012, 8 are cached states, and 4 cached pages.
  expect(sizes).toEqual({
    contextTokens: 64_000,
    slots: 8,
    pages: 1004,
    promptCacheBytes: 8 * mib,
  });
  expect(await fits({ ...sizes, pages: sizes.pages + 1 })).toBe(false);
});

test("below 32,768 tokens there are fewer streams instead, and then no cache", async () => {
  const fewer = await first({}, { ...large, fits: room(600, 30) });
  expect(fewer).toMatchObject({ slots: 2, contextTokens: 64 * (600 - 60 - 12) });
  const alone = await first({}, { ...large, fits: room(540, 10) });
  expect(alone).toMatchObject({ slots: 1, contextTokens: 64 * (540 - 10 - 12) });
  const uncached = await first({}, { ...large, fits: room(528, 10) });
  expect(uncached).toMatchObject({ slots: 1, promptCacheBytes: 0, contextTokens: 64 * 518 });
  const small = await first({}, { ...large, fits: room(300, 10) });
  expect(small).toMatchObject({ slots: 1, promptCacheBytes: 0, contextTokens: 64 * 290 });
  const asked = await first({ parallel: 8 }, { ...large, fits: room(300, 10) });
  expect(asked).toMatchObject({ slots: 8, promptCacheBytes: 0, contextTokens: 64 * 220 });
});

test("where not even a page fits, the smallest backend is tried, for its error", async () => {
  expect(await all({}, { ...large, fits: async () => false })).toEqual([
    { contextTokens: 64, slots: 1, pages: 1, promptCacheBytes: 0 },
  ]);
});

test("keys and values that were asked for decide the context", async () => {
  const fits = room(100_000);
  const options = { kvBytes: 700 * mib };
  expect(await first(options, { ...large, fits })).toMatchObject({
    contextTokens: 700 * 64,
    pages: 704,
  });
  const least = await first({ kvBytes: mib }, { ...large, fits });
  expect(least).toMatchObject({ contextTokens: 4096, pages: 68 });
});

test("where nobody knows the room, keys and values take 4 GiB, and less where they are refused", async () => {
  const tried = await all({}, { contextMax: 1_000_000 });
  expect(tried[0]).toMatchObject({ contextTokens: 4096 * 64, pages: 4100, slots: 8 });
  expect(tried.at(-1)).toEqual({ contextTokens: 4096, slots: 1, pages: 64, promptCacheBytes: 0 });
  const tab = await first({}, { contextMax: 1_000_000, kvBytes: 256 * mib });
  expect(tab).toMatchObject({ contextTokens: 256 * 64, pages: 260 });
});
