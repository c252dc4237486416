/** This engine in a process of its own: at each message it measures a prompt and the reply behind it. */
import { CpuBench } from "../../src/cli/bench/synthetic-cpu.ts";

const choice = { threads: Number(process.argv[2]), activations: "int8" } as const;
const bench = await CpuBench.open({ shape: "0.8b", bits: 4, choice });

process.on("message", async () => {
  const speeds = await bench.run();
  process.send!({ ...speeds, peakBytes: 1024 * process.resourceUsage().maxRSS });
});
process.send!("ready");
