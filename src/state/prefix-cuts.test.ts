import { expect, test } from "vitest";
import { EvictedPrefixes } from "./evicted-prefixes.ts";
import { prefixCuts } from "./prefix-cuts.ts";
import { isPrefix, prefixHashes } from "./token-prefix.ts";

test("cuts every 2,048 tokens, but not beside a mark", () => {
  expect(prefixCuts([], 2048)).toEqual([]);
  expect(prefixCuts([], 2049)).toEqual([2048]);
  expect(prefixCuts([100, 4000], 9000)).toEqual([2048, 6144, 8192]);
  expect(prefixCuts([4096 - 256], 5000)).toEqual([2048, 4096]);
});

test("a prefix is compared up to its rows, and no further", () => {
  expect(isPrefix({ ids: [1, 2, 3], rows: 2 }, [1, 2, 9])).toBe(true);
  expect(isPrefix({ ids: [1, 2, 3], rows: 3 }, [1, 2, 9])).toBe(false);
  expect(isPrefix({ ids: [1, 2, 3], rows: 3 }, [1, 2])).toBe(false);
  const ids = [1, 2, 3];
  expect(isPrefix({ ids, rows: 3 }, ids)).toBe(true);
});

test("hashes tell orders, lengths and single tokens apart", () => {
  const hashesOf = (ids: readonly number[]) => [...prefixHashes(ids)];
  expect(hashesOf([1, 2])).toHaveLength(3);
  expect(hashesOf([1, 2, 3]).slice(0, 3)).toEqual(hashesOf([1, 2]));
  const seen = new Set<number>();
  for (let a = 0; a < 60; a++) for (let b = 0; b < 60; b++) seen.add(hashesOf([a, b]).at(-1)!);
  expect(seen.size).toBe(3600);
  for (const hash of seen) expect(Number.isSafeInteger(hash)).toBe(true);
});

test("remembers the last thousand that were evicted", () => {
  const evicted = new EvictedPrefixes();
  expect(evicted.holdPrefixOf([1, 2, 3])).toBe(false);
  evicted.add({ ids: [1, 2, 9], rows: 2 });
  expect(evicted.holdPrefixOf([1, 2, 3])).toBe(true);
  expect(evicted.holdPrefixOf([1, 2])).toBe(false);
  expect(evicted.holdPrefixOf([1, 3, 3])).toBe(false);
  for (let id = 100; id < 1124; id++) evicted.add({ ids: [id], rows: 1 });
  expect(evicted.holdPrefixOf([1, 2, 3])).toBe(false);
  expect(evicted.holdPrefixOf([1123, 5])).toBe(true);
});
