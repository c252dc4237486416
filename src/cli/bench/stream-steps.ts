import type { Backend } from "../../backend/backend.ts";
import { firstRows } from "../../backend/windows.ts";
import { systemClock } from "../../clock.ts";
import { invariant } from "../../errors.ts";
import { pageId, slotId } from "../../ids.ts";
import { planPass } from "../../model/plan.ts";
import { namedShape } from "../../model/released-shapes.ts";
import { type GpuChoice, openSyntheticGpu } from "../../node.ts";
import { pagesFor } from "../../state/kv-pages.ts";
import { randomWeights } from "../../weights/random.ts";
import type { AffineBits } from "../../weights/weights.ts";
import { inRow } from "./in-row.ts";
import { rounded, type Spread, spread } from "./spread.ts";

const contexts = [0, 2048, 16_384];
/** Rows of each stream's window. */
const windowRows = 4;
const warmUpMs = 1000;

export interface StreamStepsOptions {
  readonly shape: string;
  readonly bits: AffineBits;
  readonly streams: number;
  readonly repeats: number;
  readonly choice: GpuChoice;
}

export interface StreamStepsReport {
  readonly bench: "streams";
  readonly shape: string;
  readonly bits: number;
  readonly backend: string;
  readonly node: string;
  readonly repeats: number;
  readonly streams: number;
  readonly contexts: readonly ContextReport[];
}

/** Rounds of one context, measured in turns; each stream has a row more. */
interface ContextReport {
  readonly context: number;
  readonly one_ms: Spread;
  readonly all_ms: Spread;
  /** Rounds in which every stream has a window, all rows of which are kept. */
  readonly windows_ms: Spread;
  /** Tokens a second of all streams over those of one, medians. */
  readonly all_of_one: number;
}

/** Measures plain rounds that streams share beside those of one, over random weights of a shape. */
export async function benchStreamSteps(options: StreamStepsOptions): Promise<StreamStepsReport> {
  const { streams, bits, repeats, choice } = options;
  const shape = namedShape(options.shape);
  invariant(shape !== null, `the shape ${options.shape}`);
  const weights = randomWeights(shape, { seed: 1, bits, groupSize: 64 });
  const pagesEach = pagesFor(Math.max(...contexts) + windowRows);
  const rows = streams * windowRows;
  const sizes = { slots: streams, pages: streams * pagesEach, rowsMax: rows, drawsMax: rows };
  await using backend = await openSyntheticGpu({ weights, ...sizes, taps: [] }, choice);
  const steps = new StreamSteps(backend, pagesEach);
  const until = systemClock.nowMs() + warmUpMs;
  while (systemClock.nowMs() < until) await steps.round(1, 0, 1);
  const reports: ContextReport[] = [];
  for (const context of contexts) reports.push(await measure(steps, context, streams, repeats));
  const { info } = backend;
  return {
    bench: "streams",
    shape: options.shape,
    bits,
    backend: `${info.name}: ${info.device}; ${info.arithmetic}`,
    node: process.version,
    repeats,
    streams,
    contexts: reports,
  };
}

async function measure(
  steps: StreamSteps,
  context: number,
  streams: number,
  repeats: number,
): Promise<ContextReport> {
  const times: Record<"one" | "all" | "windows", number[]> = { one: [], all: [], windows: [] };
  for (let repeat = 0; repeat < repeats; repeat++) {
    times.one.push(await inRow(() => steps.round(1, context, 1)));
    times.all.push(await inRow(() => steps.round(streams, context, 1)));
    times.windows.push(await inRow(() => steps.round(streams, context, windowRows)));
  }
  const [one, all] = [spread(times.one), spread(times.all)];
  return {
    context,
    one_ms: one,
    all_ms: all,
    windows_ms: spread(times.windows),
    all_of_one: rounded((streams * one.median) / all.median),
  };
}

/** Rounds at a fixed place; what the rows hold doesn't matter to the time. */
class StreamSteps {
  readonly #backend: Backend;
  readonly #pagesEach: number;

  constructor(backend: Backend, pagesEach: number) {
    this.#backend = backend;
    this.#pagesEach = pagesEach;
    for (let slot = 0; slot < backend.info.slots; slot++) backend.open(slotId(slot));
  }

  /** A round of the first `streams` streams, each with so many rows behind `context`. */
  async round(streams: number, context: number, rows: number): Promise<void> {
    const window = rows > 1;
    const plan = planPass(
      Array.from({ length: streams }, (_, index) => ({
        ids: Array.from({ length: rows }, (_row, row) => (context + index + row) % 1000),
        start: context,
        stateSlot: slotId(index),
        nextSlot: slotId(index),
        pages: Array.from({ length: this.#pagesEach }, (_page, page) =>
          pageId(index * this.#pagesEach + page),
        ),
        draw: "all",
        candidates: 1,
        window,
      })),
    );
    const handle = this.#backend.verify(plan);
    await this.#backend.read(handle);
    if (!window) return;
    this.#backend.keep(
      handle,
      plan.segments.map(() => firstRows(rows)),
    );
  }
}
