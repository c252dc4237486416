import { InvalidArgumentError } from "commander";
import { expect, test } from "vitest";
import { GateRun } from "./gate-run.ts";
import { type Shard, shardValue } from "./shard.ts";

const names = Array.from({ length: 53 }, (_, number) => `cell ${number}`);

async function ran(shard: Shard) {
  const clock = { nowMs: () => 0, unixSeconds: () => 0 };
  const run = new GateRun(clock, true, () => {}, shard);
  for (const name of names) await run.cell(name, async () => ({ ok: true, detail: "" }));
  return run.report("any", "none");
}

test.each([1, 2, 3, 8])("%d shards run every cell once", async (count) => {
  const shards = Array.from({ length: count }, (_, index) => ({ index, count }));
  const reports = await Promise.all(shards.map(ran));
  const cells = reports.flatMap(({ cases }) => cases.map(({ name }) => name));
  expect(cells.toSorted()).toEqual(names.toSorted());
});

test("a shard tells what others run", async () => {
  const report = await ran({ index: 1, count: 2 });
  expect(report.not_run).toEqual([`${names.length - report.passed} cells: this is shard 2 of 2`]);
  expect((await ran({ index: 0, count: 1 })).not_run).toEqual([]);
});

test("a shard without cells has not passed", async () => {
  expect(await ran({ index: 20, count: 21 })).toMatchObject({ ok: false, passed: 0, failed: 0 });
});

test("flags name a shard", () => {
  expect(shardValue("1/1")).toEqual({ index: 0, count: 1 });
  expect(shardValue("8/8")).toEqual({ index: 7, count: 8 });
  for (const wrong of ["0/8", "9/8", "1", "1/0", "a/b", "1/2/3", "-1/2", ""]) {
    expect(() => shardValue(wrong)).toThrow(InvalidArgumentError);
  }
});
