/**
 * This engine and node-llama-cpp over random weights of one shape, in turns, each in a process of its own:
 * `node bench/llama/compare.ts GGUF [THREADS] [REPEATS]`. Prints one JSON report.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { spread } from "../../src/cli/bench/spread.ts";
import { measureCpuRead } from "../../src/node.ts";

interface Sample {
  readonly prefill: number;
  readonly decode: number;
  readonly peakBytes: number;
}

const promptTokens = 512;
const replyTokens = 64;
const [gguf, threads = "2", repeats = "7"] = process.argv.slice(2);
if (gguf === undefined) throw new Error("which GGUF file? (make-gguf.ts)");

async function start(script: string, args: readonly string[]): Promise<ChildProcess> {
  const child = fork(new URL(script, import.meta.url), args, {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  await once(child, "message");
  return child;
}

async function measure(child: ChildProcess): Promise<Sample> {
  child.send("go");
  const [sample] = await once(child, "message");
  return sample as Sample;
}

const sizes = [promptTokens, replyTokens].map(String);
const processes = {
  ours: await start("./ours.ts", [threads]),
  peer: await start("./peer.js", [gguf, threads, ...sizes]),
};
const samples: Record<"ours" | "peer", Sample[]> = { ours: [], peer: [] };
const reads: number[] = [];
// The first of each isn't counted.
for (let repeat = -1; repeat < Number(repeats); repeat++) {
  for (const name of ["ours", "peer"] as const) {
    const sample = await measure(processes[name]);
    if (repeat >= 0) samples[name].push(sample);
  }
  reads.push((await measureCpuRead(Number(threads))).medianBytesPerSecond / 1e9);
}
for (const child of Object.values(processes)) child.kill();

const report = (name: "ours" | "peer") => ({
  prefill: spread(samples[name].map(({ prefill }) => prefill)),
  decode: spread(samples[name].map(({ decode }) => decode)),
  peak_mib: Math.round(samples[name].at(-1)!.peakBytes / 2 ** 20),
});
const ratio = (what: keyof Sample) =>
  spread(samples.ours.map((ours, repeat) => ours[what] / samples.peer[repeat]![what]));
const result = {
  threads: Number(threads),
  read_gb_per_second: spread(reads),
  ours: report("ours"),
  peer: report("peer"),
  ratios: { prefill: ratio("prefill"), decode: ratio("decode"), peak: ratio("peakBytes") },
};
process.stdout.write(`${JSON.stringify(result, null, 2)}\n`);
