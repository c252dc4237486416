import { expect, test } from "vitest";
import { sizesToTry } from "./open-sizes.ts";

const mib = 2 ** 20;
const pageBytes = mib;

test("eight whole contexts where they are few bytes, then fewer streams, then less for each", () => {
  const all = sizesToTry({}, 8 * mib, pageBytes, 640);
  expect(all.slice(0, 4)).toEqual([
    { slots: 8, pages: 84, promptCacheBytes: 8 * mib },
    { slots: 4, pages: 44, promptCacheBytes: 8 * mib },
    { slots: 2, pages: 24, promptCacheBytes: 8 * mib },
    { slots: 1, pages: 14, promptCacheBytes: 8 * mib },
  ]);
  expect(all.slice(4)).toEqual(
    [8, 4, 2, 1].map((slots) => ({ slots, pages: 10, promptCacheBytes: 0 })),
  );
});

test("streams share what keys and values may take, and one context is always there", () => {
  const [most] = sizesToTry({ parallel: 6, kvBytes: 25 * mib }, 0, pageBytes, 640);
  expect(most).toEqual({ slots: 6, pages: 25, promptCacheBytes: 0 });
  const [least] = sizesToTry({ parallel: 6, kvBytes: 3 * mib }, 0, pageBytes, 640);
  expect(least).toEqual({ slots: 6, pages: 10, promptCacheBytes: 0 });
});

test("what was asked for is tried or refused, never left out", () => {
  const all = sizesToTry({ parallel: 3, promptCacheBytes: 4 * mib }, 8 * mib, pageBytes, 640);
  expect(all.map(({ slots, promptCacheBytes }) => [slots, promptCacheBytes])).toEqual([
    [3, 4 * mib],
    [3, 4 * mib],
  ]);
  const wide = sizesToTry({ parallel: 2, kvBytes: 15 * mib }, 0, pageBytes, 640);
  expect(wide.map(({ pages }) => pages)).toEqual([15, 15]);
  expect(() => sizesToTry({ kvBytes: -1 }, 0, pageBytes, 640)).toThrow(/kvBytes/);
  expect(() => sizesToTry({ promptCacheBytes: Number.NaN }, 0, pageBytes, 640)).toThrow(
    /promptCacheBytes/,
  );
});
