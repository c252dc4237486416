/**
 * `npm run fuzz -- --runs 2000`: what opening a changed file takes: at most 50 ms of processor time and 64 MB of
 * memory. Changed are the files of src/fuzz.cases.ts; `npm test` shows that each gives a typed error or a model.
 */
import { parseArgs } from "node:util";
import { kinds, Reads, randomOf, seed } from "../src/fuzz.cases.ts";

const msMax = 50;
const bytesMax = 64e6;

const { values } = parseArgs({ options: { runs: { type: "string", default: "2000" } } });
const runs = Number(values.runs);

/** Garbage included: package.json gives it so much room that it stays until `gc`. */
const memory = (): number => {
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
};

/** The most of something, and which run took it. */
class Most {
  value = 0;
  #run = 0;

  add(value: number, run: number): void {
    if (value > this.value) [this.value, this.#run] = [value, run];
  }

  text(unit: string): string {
    return `${this.value.toFixed(1)} ${unit} (run ${this.#run})`;
  }
}

let failed = false;
for (const [name, make] of Object.entries(kinds)) {
  const [ms, mb] = [new Most(), new Most()];
  // The first isn't counted: it loads and compiles code.
  for (let run = 0; run <= runs; run++) {
    const file = make(randomOf(run), new Reads());
    globalThis.gc!();
    const [before, start] = [memory(), process.threadCpuUsage()];
    await file.open().catch(() => {});
    const { user, system } = process.threadCpuUsage(start);
    if (run === 0) continue;
    ms.add((user + system) / 1e3, run);
    mb.add((memory() - before) / 1e6, run);
  }
  console.log(`${name}: at most ${ms.text("ms")}, ${mb.text("MB")} of ${runs} runs, seed ${seed}`);
  failed ||= ms.value > msMax || mb.value > bytesMax / 1e6;
}
process.exitCode = failed ? 1 : 0;
