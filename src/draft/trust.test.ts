import { expect, test } from "vitest";
import { Trust } from "./trust.ts";

test("a drafter that lands what it foresees is believed, and one that doesn't is not", () => {
  const trust = new Trust();
  expect(trust.share).toBe(1);
  for (let round = 0; round < 100; round++) trust.observe(4, 1);
  expect(trust.share).toBeCloseTo(0.25, 2);
  for (let round = 0; round < 100; round++) trust.observe(4, 5);
  // No more than it says itself.
  expect(trust.share).toBe(1);
});
