import type { Backend, PassResult, Snapshot } from "../../backend/backend.ts";
import type { TokenId } from "../../ids.ts";
import { planPass } from "../../model/plan.ts";
import { stateFingerprint } from "../../state/fingerprint.ts";
import { pagesFor } from "../../state/kv-pages.ts";
import type { GateRun } from "./gate-run.ts";
import { eachGateWeights } from "./gate-weights.ts";
import { describeBackend, type GateOptions } from "./options.ts";
import { randomInts, shuffled, Timeline } from "./timeline.ts";

const streams = 16;
const numbers = Array.from({ length: streams }, (_, index) => index);
const contextTokens = 192;
/** Tokens that stream i holds before the compared pass: on both sides of a page's edge. */
const historyTokens = (stream: number): number => [0, 1, 3, 40, 62, 63, 64, 65, 100][stream % 9]!;
const widths = [2, 3, 4, 5, 8, 11, 16];
const fullWidths = Array.from({ length: streams - 1 }, (_, index) => index + 2);

/**
 * One row of a stream alone in a pass equals the same row among 2 to 16 others: shuffled, beside
 * windows of several rows, and beside streams whose state and KV are NaN.
 */
export async function rowsGate(run: GateRun, options: GateOptions): Promise<string> {
  let device = "";
  await eachGateWeights(run, options, async ({ name, weights }) => {
    const pages = streams * pagesFor(contextTokens);
    const rowsMax = 128;
    const sizes = { weights, slots: streams, pages, rowsMax, drawsMax: streams, taps: [] };
    await using backend = await options.open(sizes);
    device = describeBackend(backend);
    const cells = new RowCells(backend, weights.shape.vocabSize);
    await cells.prepare();
    for (const width of options.full ? fullWidths : widths) {
      await run.cell(`${name}: among ${width}`, () => cells.compare(width, "finite"));
      await run.cell(`${name}: among ${width}, NaN beside`, () => cells.compare(width, "nan"));
    }
    if (!options.full) run.skip(`${name}: the other widths`, "--full runs them");
  });
  return device;
}

class RowCells {
  readonly #backend: Backend;
  readonly #random: (below: number) => number;
  readonly #vocabSize: number;
  readonly #timelines: Timeline[] = [];
  readonly #snapshots: Snapshot[] = [];
  /** The rows that the compared pass feeds: one or several a stream. */
  readonly #windows: TokenId[][] = [];
  readonly #alone: string[] = [];

  constructor(backend: Backend, vocabSize: number) {
    this.#backend = backend;
    this.#vocabSize = vocabSize;
    this.#random = randomInts(42);
  }

  /** Gives every stream a history and records what its next rows are alone. */
  async prepare(): Promise<void> {
    const tokens = (count: number) =>
      Array.from({ length: count }, () => this.#random(this.#vocabSize));
    for (let stream = 0; stream < streams; stream++) {
      const timeline = new Timeline(this.#backend, stream, pagesFor(contextTokens));
      const history = tokens(historyTokens(stream));
      if (history.length > 0) await timeline.feed(history);
      this.#timelines.push(timeline);
      this.#snapshots.push(await timeline.save());
      this.#windows.push(tokens(stream % 3 === 2 ? 1 + (stream % 5) : 1));
      const result = await timeline.feed(this.#windows[stream]!, 0);
      this.#alone.push(await this.#record(stream, result, 0));
    }
  }

  /** Runs `width` streams in one pass, in random order, and compares each finite one. */
  async compare(width: number, neighbours: "finite" | "nan") {
    const order = shuffled(numbers, this.#random).slice(0, width);
    // With NaN neighbours only the first chosen stream is whole.
    const whole = neighbours === "finite" ? order : order.slice(0, 1);
    const placed = neighbours === "finite" ? order : shuffled(order, this.#random);
    for (const stream of placed) {
      const snapshot = this.#snapshots[stream]!;
      this.#timelines[stream]!.restore(whole.includes(stream) ? snapshot : poisoned(snapshot));
    }
    const plan = planPass(
      placed.map((stream) => this.#timelines[stream]!.segment(this.#windows[stream]!, 0)),
    );
    const result = await this.#backend.read(this.#backend.verify(plan));
    for (const stream of placed) this.#timelines[stream]!.advance(this.#windows[stream]!.length);
    const different: number[] = [];
    for (const stream of whole) {
      const record = await this.#record(stream, result, placed.indexOf(stream));
      if (record !== this.#alone[stream]) different.push(stream);
    }
    const poisonedRows = placed.filter((stream) => !whole.includes(stream));
    const detail =
      different.length === 0
        ? `${whole.length} rows equal, ${poisonedRows.length} NaN beside`
        : `streams ${different.join(", ")} differ`;
    return { ok: different.length === 0, detail };
  }

  /** Everything that the pass made of one stream: its logits, state, history and KV. */
  async #record(stream: number, result: PassResult, draw: number): Promise<string> {
    const drawn = result.draws[draw]!;
    if (drawn instanceof Error) return `not finite: ${drawn.message}`;
    return stateFingerprint(await this.#timelines[stream]!.save());
  }
}

/** The snapshot with NaN in place of every float of state, history and KV, the drafter's too. */
export function poisoned(snapshot: Snapshot): Snapshot {
  const nan = (array: Float32Array) => new Float32Array(array.length).fill(Number.NaN);
  return {
    ...snapshot,
    state: nan(snapshot.state),
    history: nan(snapshot.history),
    keys: nan(snapshot.keys),
    values: nan(snapshot.values),
    draftKeys: nan(snapshot.draftKeys),
    draftValues: nan(snapshot.draftValues),
  };
}
