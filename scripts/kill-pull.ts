/**
 * `node scripts/kill-pull.ts`: kills pulls by SIGKILL at calls to the file system, and looks whether the
 * cache is valid and the next pull goes on (src/hub/kill.cases.ts). `--points` says how many, of all in an
 * order that `--seed` makes.
 */
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { KillBench, type KillPoint, moments, pointText, scenarios } from "../src/hub/kill.cases.ts";

const { values } = parseArgs({
  options: {
    points: { type: "string", default: "1000" },
    seed: { type: "string", default: "1" },
  },
});

/** Every call of every scenario, at every moment. */
async function allPoints(): Promise<KillPoint[]> {
  await using bench = await KillBench.open();
  const points: KillPoint[] = [];
  for (const scenario of scenarios) {
    const calls = await bench.callsOf(scenario);
    for (let call = 1; call <= calls; call++) {
      for (const moment of moments) points.push({ scenario, call, moment });
    }
  }
  return points;
}

/** Which of `count` comes n-th: a permutation by repeated draws. */
function shuffled<T>(items: readonly T[], seed: number): T[] {
  let state = seed >>> 0;
  const rest = [...items];
  for (let last = rest.length - 1; last > 0; last--) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    const other = Math.floor((state / 2 ** 32) * (last + 1));
    [rest[last], rest[other]] = [rest[other]!, rest[last]!];
  }
  return rest;
}

const all = await allPoints();
const points = shuffled(all, Number(values.seed)).slice(0, Number(values.points));
const waiting = points.values();
let failed = 0;

async function worker(): Promise<void> {
  await using bench = await KillBench.open();
  for (const point of waiting) {
    const wrong = await bench.wrongAt(point);
    if (wrong.length === 0) continue;
    failed++;
    console.log(`FAIL ${pointText(point)}: ${wrong.join("; ")}`);
  }
}

await Promise.all(Array.from({ length: availableParallelism() }, worker));
console.log(`${points.length} of ${all.length} points, ${failed} failed (seed ${values.seed})`);
process.exitCode = failed > 0 ? 1 : 0;
