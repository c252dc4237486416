import { expect, test } from "vitest";
import { GateRun } from "./gate-run.ts";
import { eachGateWeights } from "./gate-weights.ts";
import type { GateOptions } from "./options.ts";

const options: GateOptions = {
  open: () => Promise.reject(new Error("nothing is opened here")),
  model: "nano",
  drafter: async () => null,
  full: false,
  references: null,
};

/** The names of the weights that are used where each takes a minute. */
async function usedIn(full: boolean) {
  let minutes = 0;
  const clock = { nowMs: () => 60_000 * minutes, unixSeconds: () => 0 };
  const run = new GateRun(clock, full, () => {});
  const used: string[] = [];
  await eachGateWeights(run, options, async ({ name }) => {
    used.push(name);
    minutes++;
  });
  return { used, notRun: run.report("rows", "").not_run };
}

test("a sample opens no more weights when its time is over, and says so", async () => {
  const { used, notRun } = await usedIn(false);
  expect(used).toEqual([
    "4-bit g32, r = 3",
    "8-bit g64, r = 1, tied",
    "3-bit g64, r = 2, wide heads",
  ]);
  expect(notRun).toHaveLength(5);
  expect(notRun.at(-1)).toBe("nano: out of the sample's time; --full runs it");
});

test("a full run opens all, the model last", async () => {
  const { used, notRun } = await usedIn(true);
  expect(used).toHaveLength(8);
  expect(used.at(-1)).toBe("nano");
  expect(notRun).toEqual([]);
});
