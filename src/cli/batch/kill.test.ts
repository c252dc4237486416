import { expect, test } from "vitest";
import { queueProgram } from "../../batch/redis.cases.ts";
import { killBatch } from "./kill.cases.ts";

// The whole of it is scripts/batch-kill.ts.
test.skipIf(queueProgram === null)(
  "killed workers and restarts of the queue lose no request, and change none",
  async () => {
    const run = { requests: 48, seed: 7, resultsPerKill: 8 };
    const report = await killBatch(run, () => {});
    expect(report.faults).toEqual([]);
    expect(report).toMatchObject({ results: 48, restarts: 2 });
    expect(report.kills).toBeGreaterThan(0);
    expect(report.makers).toBeGreaterThan(1);
  },
);
