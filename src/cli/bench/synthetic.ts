import { systemClock } from "../../clock.ts";
import { invariant } from "../../errors.ts";
import { pageRows } from "../../limits.ts";
import { namedDrafter, namedShape } from "../../model/released-shapes.ts";
import { derivedSizes } from "../../model/shape.ts";
import { type GpuChoice, inspectGpu, openSyntheticGpu } from "../../node.ts";
import { randomWeights } from "../../weights/random.ts";
import { randomDrafterWeights } from "../../weights/random-drafter.ts";
import type { AffineBits } from "../../weights/weights.ts";
import { benchDraftedRounds, type DraftedReport } from "./drafted-round.ts";
import { PassBench, type PassCase, type PassTimes } from "./pass-bench.ts";
import { roundBytes } from "./round-bytes.ts";
import { rounded, type Spread, spread } from "./spread.ts";

const chunk = 512;
const contexts = [0, 2048, 16_384];
/** Plain decoding and verify rounds; then prompts. */
const decodeRows = [1, 2, 4, 8, 16];
const promptRows = [512, 2048, 8192];
const contextTokens = Math.max(...contexts) + Math.max(...promptRows);

export interface SyntheticReport {
  readonly bench: "decode";
  readonly shape: string;
  readonly bits: number;
  readonly backend: string;
  readonly node: string;
  readonly repeats: number;
  readonly weight_gib: number;
  readonly open_seconds: number;
  /** Of a kernel that only reads, in this run. */
  readonly read_gb_per_second: number;
  readonly passes: readonly PassReport[];
  /** Plain steps with the state in place and with a copy of it, in turns A B B A; absent unless asked. */
  readonly scan?: ScanReport;
  /** Rounds with a drafter of a released drafter's proportions, quantised as the model is. */
  readonly drafted?: readonly DraftedReport[];
}

export interface PassReport {
  readonly rows: number;
  readonly context: number;
  /** From giving the plan to having its drawn ids. */
  readonly ms: Spread;
  readonly tokens_per_second: number;
  /** The part of it that the host spends on giving the plan. */
  readonly encode_ms: Spread;
  /** Of this time over that of one row at the same context; of rounds. */
  readonly of_plain?: number;
  /** Least bytes that the GPU reads and writes: weights, states, keys and values; of rounds. */
  readonly bytes?: number;
  /** Those bytes over the time and the read bandwidth. */
  readonly share_of_bandwidth?: number;
  readonly dispatches: number;
  readonly us_per_dispatch: number;
}

export interface ScanReport {
  readonly in_place_ms: Spread;
  readonly copy_ms: Spread;
  /** Bytes of state that the copy moves besides. */
  readonly copied_bytes: number;
}

export interface SyntheticOptions {
  readonly shape: string;
  readonly bits: AffineBits;
  readonly repeats: number;
  readonly choice: GpuChoice;
  readonly compareScan: boolean;
  /** Drafted rounds alone, beside plain steps. */
  readonly drafted: boolean;
  /** Called with each result as it comes: a run takes minutes. */
  readonly onPass?: (pass: PassReport) => void;
}

/** Measures passes over random weights of a released model's shape, made on the device. */
export async function benchSynthetic(options: SyntheticOptions): Promise<SyntheticReport> {
  const { bits, repeats, choice } = options;
  const shape = namedShape(options.shape);
  invariant(shape !== null, `the shape ${options.shape}`);
  const { read } = (await inspectGpu(choice.adapter)).chosen;
  const readPerMs = read.medianBytesPerSecond / 1000;
  const weights = randomWeights(shape, { seed: 1, bits, groupSize: 64 });
  const pages = contextTokens / pageRows;
  const drafter = options.drafted ? namedDrafter(shape) : null;
  const sizes = {
    ...{ weights, slots: 1, pages, rowsMax: chunk, drawsMax: 16, taps: [] },
    drafter: drafter && {
      weights: randomDrafterWeights(drafter, { seed: 1, bits, groupSize: 64 }),
    },
  };
  const start = systemClock.nowMs();
  await using backend = await openSyntheticGpu(sizes, choice);
  const openSeconds = (systemClock.nowMs() - start) / 1000;
  const bench = new PassBench(backend);
  await bench.warmUp();
  const passes: PassReport[] = [];
  const add = (pass: PassReport) => {
    passes.push(pass);
    options.onPass?.(pass);
  };
  const drafted: DraftedReport[] = [];
  for (const context of contexts) {
    if (drafter) {
      drafted.push(await benchDraftedRounds(backend, bench, drafter, context, repeats));
      continue;
    }
    const rounds = await measure(bench, decodeRows, context, repeats);
    const plainMs = rounds[0]!.ms.median;
    for (const [index, rows] of decodeRows.entries()) {
      const bytes = roundBytes(weights, rows, context, choice.kv === "f16" ? 2 : 4);
      const { ms, encodeMs } = rounds[index]!;
      add({
        ...common(rows, context, ms, encodeMs, backend.dispatches(rows, rows)),
        of_plain: rounded(ms.median / plainMs),
        bytes,
        share_of_bandwidth: rounded(bytes / ms.median / readPerMs),
      });
    }
    const prompts = await measure(bench, promptRows, context, Math.ceil(repeats / 5));
    for (const [index, rows] of promptRows.entries()) {
      const { ms, encodeMs } = prompts[index]!;
      const dispatches = (rows / chunk) * backend.dispatches(chunk, 1);
      add(common(rows, context, ms, encodeMs, dispatches));
    }
  }
  const { info } = backend;
  return {
    bench: "decode",
    shape: options.shape,
    bits,
    backend: `${info.name}: ${info.device}; ${info.arithmetic}`,
    node: process.version,
    repeats,
    weight_gib: rounded(info.memory.weightBytes / 2 ** 30),
    open_seconds: rounded(openSeconds),
    read_gb_per_second: rounded(read.medianBytesPerSecond / 1e9),
    passes,
    ...(drafter && { drafted }),
    ...(options.compareScan && { scan: await compareScan(bench, sizes, options) }),
  };
}

function common(rows: number, context: number, ms: Spread, encode: Spread, dispatches: number) {
  return {
    rows,
    context,
    ms,
    tokens_per_second: rounded((1000 * rows) / ms.median),
    encode_ms: encode,
    dispatches,
    us_per_dispatch: rounded((1000 * ms.median) / dispatches),
  };
}

/** The cases in turns; a round after one of its own size that isn't counted, as when decoding goes on. */
async function measure(
  bench: PassBench,
  rows: readonly number[],
  context: number,
  repeats: number,
): Promise<{ ms: Spread; encodeMs: Spread }[]> {
  const cases: PassCase[] = rows.map((count) => ({ rows: count, context, chunk }));
  const times: PassTimes[][] = cases.map(() => []);
  for (let repeat = 0; repeat < repeats; repeat++) {
    for (const [index, each] of cases.entries()) {
      if (each.rows < chunk) await bench.run(each);
      times[index]!.push(await bench.run(each));
    }
  }
  return times.map((runs) => ({
    ms: spread(runs.map(({ ms }) => ms)),
    encodeMs: spread(runs.map(({ encodeMs }) => encodeMs)),
  }));
}

async function compareScan(
  inPlace: PassBench,
  sizes: Parameters<typeof openSyntheticGpu>[0],
  { repeats, choice }: SyntheticOptions,
): Promise<ScanReport> {
  await using backend = await openSyntheticGpu({ ...sizes, gdnPath: "copy" }, choice);
  const copy = new PassBench(backend);
  const plain = { rows: 1, context: 0, chunk };
  const times: Record<"A" | "B", number[]> = { A: [], B: [] };
  await inPlace.run(plain);
  await copy.run(plain);
  for (let repeat = 0; repeat < repeats; repeat++) {
    for (const turn of ["A", "B", "B", "A"] as const) {
      const { ms } = await (turn === "A" ? inPlace : copy).run(plain);
      times[turn].push(ms);
    }
  }
  const { linearLayers, stateFloats } = derivedSizes(sizes.weights.shape);
  return {
    in_place_ms: spread(times.A),
    copy_ms: spread(times.B),
    copied_bytes: 8 * linearLayers * stateFloats,
  };
}
