import { expect, test } from "vitest";
import type { Clock } from "../clock.ts";
import { measureCosts, measureShared } from "./measure-costs.ts";

/** A backend on a virtual clock; `msOf` says how long the n-th run of a part takes. */
function bench(msOf: (part: string, run: number) => number) {
  let now = 0;
  const counts = new Map<string, number>();
  const log: string[] = [];
  const part = async (name: string) => {
    const run = counts.get(name) ?? 0;
    counts.set(name, run + 1);
    log.push(name);
    now += msOf(name, run);
  };
  const clock: Clock = { nowMs: () => now, unixSeconds: () => 0 };
  return {
    clock,
    counts,
    log,
    runs: {
      verify: (rows: number) => part(`verify ${rows}`),
      keep: () => part("keep"),
      draft: () => part("draft"),
    },
  };
}

const widths = [1, 2, 3, 4, 5, 6, 8, 10, 12, 16];
const rowsOf = (name: string) => Number(name.split(" ")[1]);

test("takes the fastest of seven runs after one that counts for nothing", async () => {
  const { runs, clock, counts } = bench((name, run) => {
    const ms = { keep: 0.25, draft: 4 }[name] ?? 10 + rowsOf(name);
    return run === 0 ? ms / 2 : ms + 8 * Math.abs((run % 8) - 5);
  });
  expect(await measureCosts(runs, clock)).toEqual({
    verify: widths.map((rows) => [rows, 10 + rows]),
    draftMs: 4,
    keepMs: 0.25,
    shared: null,
  });
  for (const rows of widths.slice(0, -1)) expect(counts.get(`verify ${rows}`)).toBe(8);
});

test("closes every window before the next pass", async () => {
  const { runs, clock, log } = bench(() => 1);
  await measureCosts(runs, clock);
  const rounds = log.filter((name) => name !== "draft");
  for (const [at, name] of rounds.entries()) expect(name === "keep").toBe(at % 2 === 1);
});

test("times a width again where a wider one was over 3 % cheaper", async () => {
  const slow = (again: number) =>
    bench((name, run) => {
      if (name === "verify 4") return run < 8 ? 30 : again;
      if (name === "verify 6") return 10.2;
      return name.startsWith("verify") ? 10 + rowsOf(name) / 100 : 1;
    });
  const disturbed = slow(10.04);
  const found = await measureCosts(disturbed.runs, disturbed.clock);
  expect(found!.verify[3]![1]).toBeCloseTo(10.04, 9);
  expect(disturbed.counts.get("verify 4")).toBe(16);
  // 10.2 beside 10.08 is within 3 %.
  expect(disturbed.counts.get("verify 6")).toBe(8);
  const steady = slow(29);
  expect((await measureCosts(steady.runs, steady.clock))!.verify[3]![1]).toBeCloseTo(29, 9);
});

test("times what is slow once, and few widths of it", async () => {
  const { runs, clock, counts } = bench((name) =>
    name === "keep" ? 1 : 450 * (rowsOf(name) || 9),
  );
  expect(await measureCosts(runs, clock)).toEqual({
    verify: [1, 4, 16].map((rows) => [rows, 450 * rows]),
    draftMs: 4050,
    keepMs: 1,
    shared: null,
  });
  expect(counts.get("draft")).toBe(2);
  expect(counts.get("verify 4")).toBe(2);
  // A keep is quick, but each needs a window before it.
  expect(counts.get("verify 16")).toBe(4);
});

test("times a crowd's rounds, and a row by what three more of each take", async () => {
  const { runs, clock, counts } = bench((name) => {
    return { "verify 1": 20, "verify 4": 32, keep: 2 }[name] ?? 9;
  });
  const shared = { streams: 4, plainMs: 20, rowMs: 1, draftMs: 9, keepMs: 2 };
  expect(await measureShared(runs, 4, clock)).toEqual(shared);
  expect(counts.get("verify 1")).toBe(8);
  const odd = bench((name) => (name === "verify 4" ? 10 : 20));
  const { rowMs } = await measureShared(odd.runs, 4, odd.clock);
  expect(rowMs).toBeCloseTo((20 * 0.03) / 12, 9);
});

test("knows no draft pass where there is none", async () => {
  const { runs, clock } = bench(() => 1);
  expect((await measureCosts({ ...runs, draft: null }, clock))!.draftMs).toBeNull();
});

test("finds nothing with a clock that stands still, and hands failures on", async () => {
  const { runs, clock } = bench(() => 0);
  expect(await measureCosts(runs, clock)).toBeNull();
  const failing = { ...runs, draft: () => Promise.reject(new Error("lost")) };
  await expect(measureCosts(failing, clock)).rejects.toThrow("lost");
});
