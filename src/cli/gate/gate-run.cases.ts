import { type GateReport, GateRun } from "./gate-run.ts";

/** Runs a gate's sample, which is over after so many cells. */
export async function runCells(
  gate: string,
  cells: number,
  go: (run: GateRun) => Promise<string>,
): Promise<GateReport> {
  let ran = 0;
  const clock = { nowMs: () => (ran < cells ? 0 : 1e9), unixSeconds: () => 0 };
  const run = new GateRun(clock, false, () => ran++);
  return run.report(gate, await go(run));
}
