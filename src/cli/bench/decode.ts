import { type ChildProcess, spawn } from "node:child_process";
import { cpus, platform } from "node:os";
import { fileURLToPath } from "node:url";
import { systemClock } from "../../clock.ts";
import type { Engine } from "../../engine.ts";
import type { OpenOptions } from "../../node.ts";
import { openEngine } from "../../node.ts";
import { optionArgs } from "../option-args.ts";
import { single } from "./single.ts";
import { rounded, type Spread, spread } from "./spread.ts";

const promptTokens = 32;
const replyTokens = 128;

/** Figures of one run; a figure that could not be taken is absent. */
export interface DecodeReport {
  readonly bench: "decode";
  readonly model: string;
  readonly backend: string;
  readonly cpu: string;
  readonly cores: number;
  readonly platform: string;
  readonly node: string;
  readonly repeats: number;
  /** Medians over the repeats, idle and busy taken in turns. */
  readonly decode_tokens_per_second: Spread;
  readonly first_token_ms: Spread;
  readonly load_ms: number;
  /** Of a fresh process: from its start to the first token's text, with a warm page cache. */
  readonly start_to_first_token_ms: Spread;
  readonly peak_memory_mib: number;
  /** While one endless loop a core competes; absent without --busy. */
  readonly busy?: BusyReport;
}

export interface BusyReport {
  readonly decode_tokens_per_second: Spread;
  /** Busy median over idle median. */
  readonly ratio: number;
  /** What a fair scheduler leaves: cores / (compute threads + loops), at most 1. */
  readonly fair_share: number;
}

/** Measures plain decoding of one stream: 32 prompt tokens, 128 reply tokens, greedy. */
export async function benchDecode(
  model: string,
  options: OpenOptions,
  repeats: number,
  busy: boolean,
): Promise<DecodeReport> {
  const start = systemClock.nowMs();
  await using engine = await openEngine(model, { ...options, ...single, drafts: false });
  const loadMs = systemClock.nowMs() - start;
  await measure(engine);
  const idle: Measured[] = [];
  const loaded: Measured[] = [];
  for (let repeat = 0; repeat < repeats; repeat++) {
    idle.push(await measure(engine));
    if (busy) loaded.push(await whileBusy(() => measure(engine)));
  }
  const starts: number[] = [];
  for (let repeat = 0; repeat < repeats; repeat++)
    starts.push(await startToFirstToken(model, options));
  const { backend } = engine.info;
  const speed = spread(idle.map((run) => run.tokensPerSecond));
  return {
    bench: "decode",
    model: engine.info.model,
    backend: `${backend.name}: ${backend.device}; ${backend.arithmetic}`,
    cpu: cpus()[0]?.model ?? "unknown",
    cores: cpus().length,
    platform: `${platform()} ${process.arch}`,
    node: process.version,
    repeats,
    decode_tokens_per_second: speed,
    first_token_ms: spread(idle.map((run) => run.firstTokenMs)),
    load_ms: rounded(loadMs),
    start_to_first_token_ms: spread(starts),
    peak_memory_mib: rounded(process.resourceUsage().maxRSS / 1024),
    ...(busy && { busy: busyReport(loaded, speed.median, options.threads ?? cpus().length) }),
  };
}

interface Measured {
  readonly tokensPerSecond: number;
  readonly firstTokenMs: number;
}

async function measure(engine: Engine): Promise<Measured> {
  const { vocabSize } = engine.info.backend.shape;
  const prompt = Array.from({ length: promptTokens }, (_, i) => (i * 37 + 11) % vocabSize);
  const request = { prompt, maxTokens: replyTokens, temperature: 0, ignoreEos: true };
  const { timings } = await engine.complete(request).result;
  return { tokensPerSecond: timings.tokensPerSecond!, firstTokenMs: timings.prefillMs };
}

/** Runs `task` beside one endless loop a core. */
async function whileBusy<T>(task: () => Promise<T>): Promise<T> {
  const started = cpus().map(() => busyLoop());
  const loops = await Promise.all(started);
  try {
    return await task();
  } finally {
    await Promise.all(loops.map(stopped));
  }
}

/** Resolves once the loop runs. */
function busyLoop(): Promise<ChildProcess> {
  const script = "process.stdout.write('.', () => { for (;;); })";
  const loop = spawn(process.execPath, ["-e", script], { stdio: ["ignore", "pipe", "inherit"] });
  return new Promise((resolve, reject) => {
    loop.stdout.once("data", () => resolve(loop));
    loop.once("error", reject);
  });
}

function stopped(loop: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    loop.once("exit", () => resolve());
    loop.kill("SIGKILL");
  });
}

/** Starts this very program as a user would, and waits for the first byte of its reply. */
function startToFirstToken(model: string, options: OpenOptions): Promise<number> {
  const bin = fileURLToPath(new URL("../../../bin/deltafold.js", import.meta.url));
  const { contextTokens, threads, backend, activations, kv } = options;
  const told = optionArgs({ contextTokens, threads, backend, activations, kv });
  const prompt = ["-p", "What is 12 + 30?", "--quiet", "--no-thinking"];
  const args = [bin, "run", model, ...prompt, ...told];
  const start = systemClock.nowMs();
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  return new Promise((resolve, reject) => {
    let firstMs: number | null = null;
    child.stdout.on("data", () => {
      firstMs ??= systemClock.nowMs() - start;
    });
    child.once("error", reject);
    child.once("exit", (code) => {
      if (code === 0 && firstMs !== null) resolve(firstMs);
      else reject(new Error(`deltafold run ended with ${code} before its first token`));
    });
  });
}

function busyReport(runs: readonly Measured[], idleMedian: number, threads: number): BusyReport {
  const speed = spread(runs.map((run) => run.tokensPerSecond));
  const cores = cpus().length;
  return {
    decode_tokens_per_second: speed,
    ratio: Math.round((1000 * speed.median) / idleMedian) / 1000,
    fair_share: Math.min(1, cores / (threads + cores)),
  };
}
