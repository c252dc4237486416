/**
 * `npm run sim`: worlds of random requests, faults and delays, each from a seed (src/rounds/simulation).
 * Prints what is wrong with a world and how to replay it.
 */
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { plantedBugs, seedsToFind } from "../src/rounds/simulation/planted-bugs.cases.ts";
import { simulate, World } from "../src/rounds/simulation/world.cases.ts";

/** Seeds in which a planted bug must show. */
const bugSeedsMost = 1000;

/** A part of the work, for one thread: every `step`th of the numbers from `first` to below `end`. */
interface Share {
  readonly what: "seeds" | "bugs";
  readonly first: number;
  readonly end: number;
  readonly step: number;
}

/** What a thread found. */
interface Finding {
  readonly line: string;
  readonly failed: boolean;
}

async function trySeed(seed: number): Promise<Finding> {
  const { failures } = await simulate(seed);
  const [first] = failures;
  if (!first) return { line: "", failed: false };
  const more = failures.length > 1 ? `, and ${failures.length - 1} more` : "";
  const replay = `replay: npm run sim -- --seed ${seed}`;
  return { line: `seed ${seed}: ${first.check}: ${first.message}${more}; ${replay}`, failed: true };
}

async function tryBug(index: number): Promise<Finding> {
  const bug = plantedBugs[index]!;
  const seeds = await seedsToFind(bug, bugSeedsMost);
  const line = seeds === null ? `not found in ${bugSeedsMost} seeds` : `found in ${seeds} seeds`;
  return { line: `${bug.name}: ${line}`, failed: seeds === null };
}

async function work({ what, first, end, step }: Share): Promise<void> {
  for (let number = first; number < end; number += step) {
    const finding = await (what === "seeds" ? trySeed(number) : tryBug(number));
    if (finding.line !== "") parentPort!.postMessage(finding);
  }
}

/** @returns how many failed */
async function onAllCores(what: Share["what"], from: number, count: number): Promise<number> {
  const step = Math.min(availableParallelism(), count);
  let failed = 0;
  const threads = Array.from({ length: step }, (_, index) => {
    const share: Share = { what, first: from + index, end: from + count, step };
    const thread = new Worker(new URL(import.meta.url), { workerData: share });
    thread.on("message", (finding: Finding) => {
      if (finding.failed) failed++;
      console.log(finding.line);
    });
    return new Promise<void>((resolve, reject) => {
      thread.on("error", reject);
      thread.on("exit", () => resolve());
    });
  });
  await Promise.all(threads);
  return failed;
}

/** One world, with all that happens in it. @returns how many failed */
async function show(seed: number): Promise<number> {
  const { scenario } = await World.of(seed);
  const { lines, failures, hash } = await simulate(seed);
  console.log(scenario);
  for (const line of lines) console.log(line);
  for (const { check, message } of failures) console.log(`${check}: ${message}`);
  console.log(`seed ${seed}: ${failures.length} failures, log ${hash}`);
  return failures.length;
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      seeds: { type: "string", default: "1000" },
      from: { type: "string", default: "0" },
      seed: { type: "string" },
      bugs: { type: "boolean", default: false },
    },
  });
  if (values.seed !== undefined) return await show(Number(values.seed));
  const what = values.bugs ? "bugs" : "seeds";
  const count = values.bugs ? plantedBugs.length : Number(values.seeds);
  const failed = await onAllCores(what, values.bugs ? 0 : Number(values.from), count);
  console.log(`${count} ${values.bugs ? "planted bugs" : "seeds"}, ${failed} failed`);
  return failed;
}

if (isMainThread) process.exitCode = (await main()) > 0 ? 1 : 0;
else await work(workerData as Share);
