import { afterAll, beforeAll, expect, it } from "vitest";
import { type KillBench, openKillBench } from "./convert-kill.cases.ts";

let bench: KillBench;
beforeAll(async () => {
  bench = await openKillBench(2);
});
afterAll(() => bench[Symbol.asyncDispose]());

// All points of a larger model: `scripts/convert-kill.ts`.
it("leaves nothing under the final name, wherever a conversion is killed", async () => {
  expect(bench.points).toBeGreaterThan(200);
  const spread = [0, 1, 2, 3].map((part) => Math.floor((part * bench.points) / 4));
  // The last: before and after the last file's sync, the folder's, the rename, and its parent's sync.
  const last = [8, 7, 6, 5, 4, 3, 2, 1].map((left) => bench.points - left);
  for (const point of [...spread, ...last]) expect(await bench.fault(point), `${point}`).toBeNull();
});
