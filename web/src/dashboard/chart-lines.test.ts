import { expect, test } from "vitest";
import { binaryTop, decimalTop, mostOf, pathOf, spanOf } from "./chart-lines.ts";

const frame = { fromMs: 0, toMs: 10_000, top: 10, width: 100, height: 50 };

test("lines join what was read one after the other", () => {
  const points = [
    { atMs: -1, value: 5 },
    { atMs: 0, value: 0 },
    { atMs: 1000, value: 10 },
    { atMs: 2000, value: null },
    { atMs: 9000, value: 5 },
    { atMs: 10_000, value: 20 },
  ];
  expect(pathOf(points, frame)).toBe("M0 50h0L10 0M90 25h0L100 0");
  expect(pathOf([], frame)).toBe("");
});

test("the upper edge is a round number over all values", () => {
  expect([0, 1, 1.2, 3, 5.1, 99, 101].map((most) => decimalTop(most, 1))).toEqual([
    ...[1, 1, 2, 5, 10, 100, 200],
  ]);
  expect([0, 2 ** 20, 2 ** 20 + 1, 3e9].map(binaryTop)).toEqual([
    ...[2 ** 20, 2 ** 20, 2 ** 21, 2 ** 32],
  ]);
  const line = [
    { atMs: 1, value: 9 },
    { atMs: 5, value: null },
    { atMs: 6, value: 3 },
  ];
  expect([mostOf([line], 0), mostOf([line], 2), mostOf([[]], 0)]).toEqual([9, 3, 0]);
});

test("a chart shows a minute at least, and ten at most", () => {
  expect([0, 60_000, 60_001, 200_000, 1e9].map(spanOf)).toEqual([
    ...[60_000, 60_000, 120_000, 300_000, 600_000],
  ]);
});
