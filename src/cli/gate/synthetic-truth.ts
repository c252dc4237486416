import type { Backend, BackendOptions, PassResult } from "../../backend/backend.ts";
import type { Candidates } from "../../backend/candidates.ts";
import type { TokenId } from "../../ids.ts";
import { windowRowsMax } from "../../limits.ts";
import { stateFingerprint } from "../../state/fingerprint.ts";
import { pagesFor } from "../../state/kv-pages.ts";
import { candidatesOf, randomInts, Timeline } from "./timeline.ts";

const promptTokens = 136;
const greedyTokens = 8;
const pagesEach = pagesFor(promptTokens + greedyTokens + windowRowsMax);

/** What a truth and its cells ask of a backend. */
export const truthSizes: Omit<BackendOptions, "weights"> = {
  slots: 3,
  pages: 3 * pagesEach,
  rowsMax: 160,
  drawsMax: 2 * windowRowsMax,
  taps: [],
};

/** A slot with pages of its own, empty. */
export const emptyTimeline = (backend: Backend, slot: number): Timeline =>
  new Timeline(backend, slot, pagesEach);

/** A position that was reached one row at a time. */
interface Step {
  /** Of state, history, KV and the last row's logits. */
  readonly print: string;
  /** The same without the logits, which a window doesn't keep. */
  readonly bare: string;
  /** The row's whole logits; null before the first row. */
  readonly logits: Candidates | null;
}

/** What one row at a time makes of a prompt. Everything throws where a byte differs. */
export class Truth {
  readonly ids: readonly TokenId[];
  /** By the number of rows that were fed. */
  readonly #steps: readonly Step[];
  readonly #greedy: readonly TokenId[];
  readonly #end: string;

  private constructor(
    ids: readonly TokenId[],
    steps: readonly Step[],
    tokens: readonly TokenId[],
    end: string,
  ) {
    this.ids = ids;
    this.#steps = steps;
    this.#greedy = tokens;
    this.#end = end;
  }

  static async of(backend: Backend, seed: number): Promise<Truth> {
    const random = randomInts(seed);
    const ids = Array.from({ length: promptTokens }, () => random(backend.info.shape.vocabSize));
    const timeline = emptyTimeline(backend, 0);
    const steps: Step[] = [{ ...(await printsOf(timeline)), logits: null }];
    for (const id of ids) {
      const logits = candidatesOf(await timeline.feed([id], 0));
      steps.push({ ...(await printsOf(timeline)), logits });
    }
    const tokens = await greedyAfter(timeline, steps.at(-1)!.logits!.ids[0]!);
    const end = await timeline.fingerprint();
    timeline.close();
    return new Truth(ids, steps, tokens, end);
  }

  /** The next `rows` tokens of the prompt, or what is left of it. */
  next(timeline: Timeline, rows: number): readonly TokenId[] {
    return this.ids.slice(timeline.rows, timeline.rows + rows);
  }

  isOver(timeline: Timeline): boolean {
    return timeline.rows >= this.ids.length;
  }

  /** @param logits whether the last pass was a chain, which keeps them */
  async compare(timeline: Timeline, logits: boolean, how: string): Promise<void> {
    const step = this.#steps[timeline.rows]!;
    const prints = await printsOf(timeline);
    const same = logits ? prints.print === step.print : prints.bare === step.bare;
    if (!same) throw new Error(`the state after ${timeline.rows} rows differs: ${how}`);
  }

  /** Whole logits of rows that follow position `start`, from draw `first` of a pass on. */
  compareLogits(result: PassResult, first: number, start: number, rows: number): void {
    for (let row = 0; row < rows; row++) {
      const expected = this.#steps[start + row + 1]!.logits!;
      const actual = candidatesOf(result, first + row);
      const same = sameBytes(actual.ids, expected.ids) && sameBytes(actual.logits, expected.logits);
      if (!same) throw new Error(`the logits of position ${start + row} differ`);
    }
  }

  /** At the prompt's end: draws the next tokens, and gives the slot back. */
  async finish(timeline: Timeline, how: string): Promise<void> {
    const tokens = await greedyAfter(timeline, this.#steps.at(-1)!.logits!.ids[0]!);
    if (tokens.join() !== this.#greedy.join()) throw new Error(`the tokens differ: ${how}`);
    if ((await timeline.fingerprint()) !== this.#end) throw new Error(`the end differs: ${how}`);
    timeline.close();
  }
}

async function printsOf(timeline: Timeline): Promise<{ print: string; bare: string }> {
  const snapshot = await timeline.save();
  const bare = stateFingerprint({ ...snapshot, logits: null });
  return { print: stateFingerprint(snapshot), bare };
}

/** Decodes from `first`, which the last row drew: 8 tokens, the first of them included. */
async function greedyAfter(timeline: Timeline, first: TokenId): Promise<TokenId[]> {
  const tokens = [first];
  while (tokens.length < greedyTokens) {
    tokens.push(candidatesOf(await timeline.feed([tokens.at(-1)!])).ids[0]!);
  }
  await timeline.feed([tokens.at(-1)!]);
  return tokens;
}

function sameBytes(a: Int32Array | Float32Array, b: Int32Array | Float32Array): boolean {
  const words = (array: Int32Array | Float32Array) =>
    new Uint32Array(array.buffer, array.byteOffset, array.length);
  const [left, right] = [words(a), words(b)];
  return left.length === right.length && left.every((word, index) => word === right[index]);
}
