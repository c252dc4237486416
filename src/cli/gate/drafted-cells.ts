import type { TokenId } from "../../ids.ts";
import { type Coverage, WatchedDrafting } from "./drafted-coverage.ts";
import type { GridCell, Task } from "./drafted-grid.ts";
import type { GateModel } from "./gate-drafting.ts";
import {
  type Asked,
  differenceOf,
  type GateLoop,
  type Served,
  silentDrafting,
  type Turn,
} from "./gate-loop.ts";
import type { CellResult } from "./gate-run.ts";
import { samplingOf } from "./gate-samplings.ts";
import { countsOf, figuresOf } from "./reply-counts.ts";
import { SerialReplies } from "./serial-replies.ts";
import { type Random, randomInts } from "./timeline.ts";

const seed = 20261201;

/** What all cells share. */
export interface CellsSetting {
  readonly loop: GateLoop;
  readonly coverage: Coverage;
  readonly vocabSize: number;
  readonly eosIds: readonly TokenId[];
  /** The drafter that blocks come from; null: none. */
  readonly model: GateModel | null;
  /** Of a reply. */
  readonly tokensMax: number;
}

/** A reply with drafts, to be held against the serial one. */
interface Comparison {
  readonly expected: Served;
  readonly turn: Turn;
}

/** Runs cells of the grid. */
export class DraftedCells {
  readonly #setting: CellsSetting;
  readonly #serial: SerialReplies;

  constructor(setting: CellsSetting) {
    this.#setting = setting;
    this.#serial = new SerialReplies(setting.loop);
  }

  /** A reply with drafts equals the serial one. */
  async alone(cell: GridCell): Promise<CellResult> {
    const { expected, turn } = await this.#prepare(cell);
    const served = await this.#setting.loop.serve(...turn);
    return { ...this.#judge(cell, expected, served, turn), counts: countsOf([served]) };
  }

  /** Two streams that share their rounds, each equal to its own serial reply. */
  async together(cells: readonly GridCell[]): Promise<CellResult> {
    const comparisons: Comparison[] = [];
    for (const cell of cells) comparisons.push(await this.#prepare(cell));
    const served = await this.#setting.loop.together(comparisons.map(({ turn }) => turn));
    const results = cells.map((cell, at) => {
      const { expected, turn } = comparisons[at]!;
      return this.#judge(cell, expected, served[at]!, turn);
    });
    return {
      ok: results.every(({ ok }) => ok),
      detail: results.map(({ detail }) => detail).join("; "),
      counts: countsOf(served),
    };
  }

  async #prepare({ task, drafter, index }: GridCell): Promise<Comparison> {
    const { model, coverage, vocabSize } = this.#setting;
    const random = randomInts(seed + index);
    const whole = this.#asked(task);
    const serial = await this.#serial.of(task.name, whole);
    const asked = drafter.cut ? cutShort(whole, random) : whole;
    const expected = drafter.cut ? await this.#setting.loop.serve(asked, silentDrafting) : serial;
    const truth = { ids: [...task.prompt.ids, ...serial.ids], vocabSize };
    const drafting = drafter.drafting({ truth, sampling: asked.sampling, random, model });
    const watched = drafting && new WatchedDrafting(drafting, coverage);
    return { expected, turn: [{ ...asked, wide: !task.narrow }, watched] };
  }

  #asked({ prompt, sampling, pastEos }: Task): Asked {
    const { tokensMax, eosIds } = this.#setting;
    return {
      promptIds: prompt.ids,
      maxTokens: tokensMax,
      sampling: samplingOf(sampling, prompt.ids),
      eosIds: new Set(pastEos ? [] : eosIds),
      stopAfter: null,
      wide: true,
    };
  }

  #judge({ task, drafter }: GridCell, expected: Served, served: Served, [, drafting]: Turn) {
    const counts = countsOf([served]);
    const { drafted, accepted } = counts;
    const { coverage } = this.#setting;
    coverage.addCell(drafter.name, drafted, accepted);
    if (task.narrow && accepted > 0) coverage.add("narrow");
    const difference = differenceOf(expected, served, drafting !== null);
    const figures = figuresOf(counts);
    return {
      ok: difference === null,
      detail: difference === null ? figures : `${difference} (${figures})`,
    };
  }
}

/** Ends at a random token: by the length asked for, or as by a stop string. */
function cutShort(asked: Asked, random: Random): Asked {
  const tokens = 1 + random(asked.maxTokens);
  return random(2) === 0 ? { ...asked, maxTokens: tokens } : { ...asked, stopAfter: tokens };
}
