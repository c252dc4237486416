import { expect, test } from "vitest";
import { Pace } from "./pace.ts";

test("drafted rounds are scaled by their own times over plain ones'", () => {
  const pace = new Pace();
  expect(pace.scale).toBe(1);
  pace.observe("drafted", 1.7);
  // Six rounds' worth of it is what was measured at load.
  expect(pace.scale).toBeCloseTo(1.1, 12);
  for (let round = 0; round < 200; round++) {
    pace.observe("drafted", 1.5);
    pace.observe("plain", 1.2);
  }
  expect(pace.scale).toBeCloseTo(1.25, 3);
});

test("a round that was held up counts as two at most, and the latest count most", () => {
  const pace = new Pace();
  pace.observe("drafted", 1000);
  expect(pace.scale).toBeCloseTo(1 + 1 / 7, 12);
  pace.observe("drafted", 0);
  expect(pace.scale).toBeCloseTo((6 + 2 + 1 / 2) / 8, 12);
  for (let round = 0; round < 200; round++) pace.observe("drafted", 1);
  expect(pace.scale).toBeCloseTo(1, 3);
});
