/**
 * `node scripts/convert-kill.ts [POINTS]`: kills conversions with SIGKILL at 1,000 points, spread evenly
 * over all there are, and looks at what each leaves.
 */
import { openKillBench } from "../src/weights/convert-kill.cases.ts";

const wanted = Number(process.argv[2] ?? 1000);
await using bench = await openKillBench(16);
const count = Math.min(wanted, bench.points);
const points = Array.from({ length: count }, (_, i) => Math.floor((i * bench.points) / count));
// The last point is where the output has its name.
points[count - 1] = bench.points - 1;
let faults = 0;
for (const point of points) {
  const fault = await bench.fault(point);
  if (fault === null) continue;
  faults++;
  console.error(`killed at point ${point} of ${bench.points}: ${fault}`);
}
console.log(`${count} of ${bench.points} points, ${faults} faults`);
process.exitCode = faults > 0 || count < wanted ? 1 : 0;
