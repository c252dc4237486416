import { expect, test } from "vitest";
import { neededPaths } from "./hub.cases.ts";
import { KillBench, moments, pointText, scenarios } from "./kill.cases.ts";

/** Of the points that `scripts/kill-pull.ts` tries; printed, so that a failure can be tried again. */
const seed = 20_261_201;

test("what is left of a pull that is killed is whole, and the next pull goes on with it", async () => {
  await using bench = await KillBench.open();
  let state = seed;
  for (const scenario of scenarios) {
    const calls = await bench.callsOf(scenario);
    expect(calls).toBeGreaterThan(20);
    for (const moment of moments) {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      const point = { scenario, moment, call: 1 + (state % calls) };
      const message = `${pointText(point)} of ${calls}, seed ${seed}`;
      expect(await bench.wrongAt(point), message).toEqual([]);
    }
  }
});

test("two processes that pull the same pull it once", async () => {
  await using bench = await KillBench.open();
  expect(await bench.sharesOfTwo()).toEqual(new Map(neededPaths.map((path) => [path, 1])));
});
