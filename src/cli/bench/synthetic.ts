import type { Backend } from "../../backend/backend.ts";
import { systemClock } from "../../clock.ts";
import { InvariantError } from "../../errors.ts";
import { type PageId, pageId, slotId } from "../../ids.ts";
import { pageRows } from "../../limits.ts";
import { planPass } from "../../model/plan.ts";
import { openSyntheticGpu } from "../../node.ts";
import { randomWeights } from "../../weights/random.ts";
import type { AffineBits } from "../../weights/weights.ts";
import { namedShape } from "./shapes.ts";
import { rounded, type Spread, spread } from "./spread.ts";

const contextTokens = 4096;
const rowsMax = 512;
/** Rows of the measured passes: plain decoding, verify rounds, a prompt chunk. */
const passRows = [1, 2, 4, 8, 16, 512];
const contexts = [0, 2048];

export interface SyntheticReport {
  readonly bench: "decode";
  readonly shape: string;
  readonly bits: number;
  readonly backend: string;
  readonly node: string;
  readonly repeats: number;
  readonly weight_gib: number;
  readonly open_seconds: number;
  readonly passes: readonly PassReport[];
}

export interface PassReport {
  readonly rows: number;
  readonly context: number;
  /** From giving the plan to having its drawn ids. */
  readonly ms: Spread;
  readonly tokens_per_second: number;
  /** The part of it that the host spends before the GPU has its work. */
  readonly encode_ms: Spread;
}

/** Measures passes over random weights of a released model's shape, made on the device. */
export async function benchSynthetic(
  name: string,
  bits: AffineBits,
  repeats: number,
  adapter: string | null,
): Promise<SyntheticReport> {
  const shape = namedShape(name);
  if (!shape) throw new InvariantError(`the shape ${name}`);
  const weights = randomWeights(shape, { seed: 1, bits, groupSize: 64 });
  const pages = contextTokens / pageRows;
  const sizes = { weights, slots: 1, pages, rowsMax, drawsMax: 16, taps: [] };
  const start = systemClock.nowMs();
  await using backend = await openSyntheticGpu(sizes, adapter);
  const openSeconds = (systemClock.nowMs() - start) / 1000;
  const bench = new PassBench(backend);
  const passes: PassReport[] = [];
  for (const context of contexts) {
    for (const rows of passRows) passes.push(await bench.measure(rows, context, repeats));
  }
  const { info } = backend;
  return {
    bench: "decode",
    shape: name,
    bits,
    backend: `${info.name}: ${info.device}; ${info.arithmetic}`,
    node: process.version,
    repeats,
    weight_gib: rounded(info.memory.weightBytes / 2 ** 30),
    open_seconds: rounded(openSeconds),
    passes,
  };
}

class PassBench {
  readonly #backend: Backend;
  readonly #pages: readonly PageId[];

  constructor(backend: Backend) {
    this.#backend = backend;
    this.#pages = Array.from({ length: backend.info.pages }, (_, index) => pageId(index));
    backend.open(slotId(0));
  }

  async measure(rows: number, context: number, asked: number): Promise<PassReport> {
    // A prompt chunk is long, and steady enough.
    const repeats = rows > 16 ? Math.min(asked, 3) : asked;
    await this.#pass(rows, context);
    const times: number[] = [];
    const encodes: number[] = [];
    for (let repeat = 0; repeat < repeats; repeat++) {
      const { ms, encodeMs } = await this.#pass(rows, context);
      times.push(ms);
      encodes.push(encodeMs);
    }
    const ms = spread(times);
    const tokensPerSecond = rounded((1000 * rows) / ms.median);
    return { rows, context, ms, tokens_per_second: tokensPerSecond, encode_ms: spread(encodes) };
  }

  /** The KV before `start` may be anything: the time doesn't depend on it. */
  async #pass(rows: number, start: number): Promise<{ ms: number; encodeMs: number }> {
    const { vocabSize } = this.#backend.info.shape;
    const ids = Array.from({ length: rows }, (_, i) => (i * 7919 + start) % vocabSize);
    const plan = planPass([
      {
        ids,
        start,
        stateSlot: slotId(0),
        nextSlot: slotId(0),
        pages: this.#pages,
        draw: rows > 16 ? "last" : "all",
        candidates: 1,
      },
    ]);
    const begin = systemClock.nowMs();
    const handle = this.#backend.verify(plan);
    const given = systemClock.nowMs();
    await this.#backend.read(handle);
    return { ms: systemClock.nowMs() - begin, encodeMs: given - begin };
  }
}
