/**
 * `npm run batch:kill`: a batch of 10,000 tiny requests on four workers, which are killed by SIGKILL every
 * few seconds while the queue server is restarted twice. Looks whether each request has one result, the
 * same as without all that (src/cli/batch/kill.cases.ts). `-- --requests N --every N --seed N`.
 */
import { parseArgs } from "node:util";
import { queueProgram } from "../src/batch/redis.cases.ts";
import { killBatch } from "../src/cli/batch/kill.cases.ts";

const { values } = parseArgs({
  options: {
    requests: { type: "string", default: "10000" },
    // Results between two kills, on average.
    every: { type: "string", default: "40" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
  },
});

if (queueProgram === null) throw new Error("It needs redis-server or valkey-server.");
const seed = Number(values.seed);
console.log(`seed ${seed}`);
const run = { requests: Number(values.requests), resultsPerKill: Number(values.every), seed };
const startMs = Date.now();
const { faults, ...report } = await killBatch(run, (line) => console.log(line));
for (const fault of faults.slice(0, 20)) console.error(`FAIL ${fault}`);
const seconds = ((Date.now() - startMs) / 1000).toFixed(0);
console.log(`${JSON.stringify(report)}: ${faults.length} faults in ${seconds} s (seed ${seed})`);
process.exitCode = faults.length > 0 ? 1 : 0;
