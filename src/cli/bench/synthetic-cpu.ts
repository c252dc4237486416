import { cpus } from "node:os";
import type { Backend } from "../../backend/backend.ts";
import { systemClock } from "../../clock.ts";
import { invariant } from "../../errors.ts";
import { pageRows, promptChunkRows } from "../../limits.ts";
import { namedShape } from "../../model/released-shapes.ts";
import { type BackendChoice, measureCpuRead, openBackend } from "../../node.ts";
import { randomWeights } from "../../weights/random.ts";
import type { AffineBits, Weights } from "../../weights/weights.ts";
import { PassBench } from "./pass-bench.ts";
import { roundBytes } from "./round-bytes.ts";
import { rounded, type Spread, spread } from "./spread.ts";

const promptTokens = 512;
const replyTokens = 64;

export interface CpuReport {
  readonly bench: "decode";
  readonly shape: string;
  readonly bits: number;
  readonly backend: string;
  readonly cpu: string;
  readonly cores: number;
  readonly node: string;
  readonly repeats: number;
  readonly weight_gib: number;
  readonly open_seconds: number;
  /** Of a prompt of 512 tokens. */
  readonly prefill_tokens_per_second: Spread;
  /** Of 64 tokens behind it. */
  readonly decode_tokens_per_second: Spread;
  /** Of this process, while it opened and computed. */
  readonly peak_memory_mib: number;
  /** Of threads that only read, as many, in this run. */
  readonly read_gb_per_second: number;
  /** Least bytes that a token reads and writes: weights, states, keys and values. */
  readonly decode_bytes: number;
  /** Those bytes over a token's median time and the read bandwidth. */
  readonly share_of_bandwidth: number;
}

export interface CpuBenchOptions {
  readonly shape: string;
  readonly bits: AffineBits;
  readonly choice: Partial<BackendChoice>;
}

/** Tokens a second of one prompt and of the reply behind it. */
export interface CpuSpeeds {
  readonly prefill: number;
  readonly decode: number;
}

/** The wasm backend over random weights of a released model's shape, made while it opens. */
export class CpuBench implements AsyncDisposable {
  readonly backend: Backend;
  readonly weights: Weights;
  readonly openSeconds: number;
  readonly #passes: PassBench;

  private constructor(backend: Backend, weights: Weights, openSeconds: number) {
    this.backend = backend;
    this.weights = weights;
    this.openSeconds = openSeconds;
    this.#passes = new PassBench(backend);
  }

  static async open({ shape: name, bits, choice }: CpuBenchOptions): Promise<CpuBench> {
    const shape = namedShape(name);
    invariant(shape !== null, `the shape ${name}`);
    const weights = randomWeights(shape, { seed: 1, bits, groupSize: 64 });
    const pages = (promptTokens + replyTokens) / pageRows;
    const sizes = { weights, slots: 1, pages, rowsMax: promptChunkRows, drawsMax: 1, taps: [] };
    const start = systemClock.nowMs();
    const backend = await openBackend(sizes, { ...choice, backend: "wasm" });
    return new CpuBench(backend, weights, (systemClock.nowMs() - start) / 1000);
  }

  async run(): Promise<CpuSpeeds> {
    const prompt = { rows: promptTokens, context: 0, chunk: promptChunkRows };
    const { ms } = await this.#passes.run(prompt);
    const begin = systemClock.nowMs();
    for (let done = 0; done < replyTokens; done++) {
      await this.#passes.run({ rows: 1, context: promptTokens + done, chunk: 1 });
    }
    const replyMs = systemClock.nowMs() - begin;
    return { prefill: (1000 * promptTokens) / ms, decode: (1000 * replyTokens) / replyMs };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.backend[Symbol.asyncDispose]();
  }
}

/** Measures a prompt and the reply behind it, `repeats` times after one that isn't counted. */
export async function benchSyntheticCpu(
  options: CpuBenchOptions,
  repeats: number,
): Promise<CpuReport> {
  const { shape, bits, choice } = options;
  await using bench = await CpuBench.open(options);
  await bench.run();
  const runs: CpuSpeeds[] = [];
  for (let repeat = 0; repeat < repeats; repeat++) runs.push(await bench.run());
  const peakKib = process.resourceUsage().maxRSS;
  const { medianBytesPerSecond } = await measureCpuRead(choice.threads);
  const { info } = bench.backend;
  const decode = spread(runs.map((run) => run.decode));
  const bytes = roundBytes(bench.weights, 1, promptTokens + replyTokens / 2, 4);
  return {
    bench: "decode",
    shape,
    bits,
    backend: `${info.name}: ${info.device}; ${info.arithmetic}`,
    cpu: cpus()[0]?.model ?? "unknown",
    cores: cpus().length,
    node: process.version,
    repeats,
    weight_gib: rounded(info.memory.weightBytes / 2 ** 30),
    open_seconds: rounded(bench.openSeconds),
    prefill_tokens_per_second: spread(runs.map((run) => run.prefill)),
    decode_tokens_per_second: decode,
    peak_memory_mib: rounded(peakKib / 1024),
    read_gb_per_second: rounded(medianBytesPerSecond / 1e9),
    decode_bytes: bytes,
    share_of_bandwidth: rounded((bytes * decode.median) / medianBytesPerSecond),
  };
}
