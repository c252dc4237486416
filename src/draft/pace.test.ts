import { expect, test } from "vitest";
import { Pace } from "./pace.ts";

test("drafted rounds are scaled by their own times over plain ones'", () => {
  const pace = new Pace();
  expect(pace.scale).toBe(1);
  pace.observe("drafted", 1.4);
  // Half of it is what was measured at load.
  expect(pace.scale).toBeCloseTo(1.2, 12);
  for (let round = 0; round < 200; round++) {
    pace.observe("drafted", 1.5);
    pace.observe("plain", 1.2);
  }
  expect(pace.scale).toBeCloseTo(1.25, 3);
});

test("a round that was held up counts as three at most, and the latest count most", () => {
  const pace = new Pace();
  pace.observe("drafted", 1000);
  expect(pace.scale).toBe(2);
  pace.observe("drafted", 0);
  expect(pace.scale).toBeCloseTo((1 + 3 + 1 / 3) / 3, 12);
  for (let round = 0; round < 100; round++) pace.observe("drafted", 1);
  expect(pace.scale).toBeCloseTo(1, 2);
});
