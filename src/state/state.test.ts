import { expect, test } from "vitest";
import { PagePool, PageTable } from "./kv-pages.ts";
import { SlotPool } from "./slots.ts";

test("slots: the lowest free one first, none twice, none lost", () => {
  const pool = new SlotPool(2);
  const first = pool.take()!;
  const second = pool.take()!;
  expect([first, second, pool.take()]).toEqual([0, 1, null]);
  pool.give(first);
  expect(pool.take()).toBe(0);
  pool.give(first);
  expect(() => pool.give(first)).toThrow(/twice/);
  pool.give(second);
  expect(pool.freeCount).toBe(2);
});

test("pages: shared until the last holder gives them back", () => {
  const pool = new PagePool(2);
  const page = pool.take()!;
  pool.share(page);
  pool.give(page);
  expect(pool.freeCount).toBe(1);
  pool.give(page);
  expect(pool.freeCount).toBe(2);
  expect(() => pool.give(page)).toThrow(/twice/);
  expect(() => pool.share(page)).toThrow(/free/);
});

test("a table grows by whole pages, or not at all", () => {
  const pool = new PagePool(3);
  const table = new PageTable(pool);
  expect(table.grow(64)).toBe(true);
  expect(table.pages).toHaveLength(1);
  expect(table.grow(65)).toBe(true);
  expect(table.pages).toHaveLength(2);
  expect(table.grow(64 * 5)).toBe(false);
  expect(pool.freeCount).toBe(1);
  table.release();
  expect(pool.freeCount).toBe(3);
});

test("a table adopts full pages, and a copy of one that isn't", () => {
  const pool = new PagePool(6);
  const first = new PageTable(pool);
  first.grow(150);
  const second = new PageTable(pool);
  const copy = second.adopt(first.pages, 130);
  expect(copy).toEqual({ from: first.pages[2], to: second.pages[2] });
  expect(second.pages.slice(0, 2)).toEqual(first.pages.slice(0, 2));
  expect(second.pages[2]).not.toBe(first.pages[2]);
  expect(second.pages.map((page) => pool.holders(page))).toEqual([2, 2, 1]);
  const third = new PageTable(pool);
  expect(third.adopt(first.pages, 128)).toBeNull();
  expect(third.pages).toEqual(first.pages.slice(0, 2));
  expect(() => third.adopt(first.pages, 64)).toThrow(/has none/);
  for (const table of [first, second, third]) table.release();
  expect(pool.freeCount).toBe(6);
});
