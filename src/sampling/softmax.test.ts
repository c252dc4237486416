import { expect, test } from "vitest";
import { nucleusCount, pairwiseSum } from "./softmax.ts";

// numpy 2.4: np.array([1/(1+i*i) for i in range(n)]).sum()
test.each([
  [0, 0],
  [7, 1.9243120949003303],
  [8, 1.9443120949003303],
  [9, 1.9596967102849456],
  [128, 2.068831111230697],
  [129, 2.068892142661884],
  [300, 2.0733351648143277],
  [1000, 2.0756735476357475],
])("the sum of %i values has numpy's bits", (count, expected) => {
  const values = Float64Array.from({ length: count }, (_, i) => 1 / (1 + i * i));
  expect(pairwiseSum(values, 0, count)).toBe(expected);
});

test("a part of an array sums as a copy of it does", () => {
  const values = Float64Array.from({ length: 700 }, (_, i) => Math.sin(i));
  const copy = values.slice(13, 613);
  expect(pairwiseSum(values, 13, 613)).toBe(pairwiseSum(copy, 0, copy.length));
});

test("the nucleus: what gathers less than top_p, plus one", () => {
  const quarters = new Float64Array(4);
  expect([0.1, 0.25, 0.26, 0.5, 0.75, 0.76, 1].map((p) => nucleusCount(quarters, p))).toEqual([
    1, 1, 2, 2, 3, 4, 4,
  ]);
  expect(nucleusCount(Float64Array.of(100, 0, 0), 0.99)).toBe(1);
});
