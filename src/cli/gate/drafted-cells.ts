import type { TokenId } from "../../ids.ts";
import { type Coverage, WatchedDrafting } from "./drafted-coverage.ts";
import type { GateModel } from "./drafted-drafting.ts";
import type { GridCell, Task } from "./drafted-grid.ts";
import {
  type Asked,
  differenceOf,
  type GateLoop,
  type Served,
  silentDrafting,
  type Turn,
} from "./drafted-loop.ts";
import { samplingOf } from "./drafted-samplings.ts";
import type { CellResult } from "./gate-run.ts";
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
  readonly #serial = new Map<Task, Served>();

  constructor(setting: CellsSetting) {
    this.#setting = setting;
  }

  /** A reply with drafts equals the serial one. */
  async alone(cell: GridCell): Promise<CellResult> {
    const { expected, turn } = await this.#prepare(cell);
    const served = await this.#setting.loop.serve(...turn);
    return this.#judge(cell, expected, served, turn);
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
      counts: sumOf(results.map(({ counts }) => counts)),
    };
  }

  async #prepare({ task, drafter, index }: GridCell): Promise<Comparison> {
    const { model, coverage, vocabSize } = this.#setting;
    const random = randomInts(seed + index);
    const serial = await this.#serialOf(task);
    const whole = this.#asked(task);
    const asked = drafter.cut ? cutShort(whole, random) : whole;
    const expected = drafter.cut ? await this.#setting.loop.serve(asked, silentDrafting) : serial;
    const truth = { ids: [...task.prompt.ids, ...serial.ids], vocabSize };
    const drafting = drafter.drafting({ truth, sampling: asked.sampling, random, model });
    const watched = drafting && new WatchedDrafting(drafting, coverage);
    return { expected, turn: [{ ...asked, wide: !task.narrow }, watched] };
  }

  /** A row a round, and wide; made once, because every drafter's reply is held against it. */
  async #serialOf(task: Task): Promise<Served> {
    const known = this.#serial.get(task);
    if (known) return known;
    const served = await this.#setting.loop.serve(this.#asked(task), silentDrafting);
    this.#serial.set(task, served);
    return served;
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
    const { rounds, drafted, accepted } = served.outcome.speculative;
    const { coverage } = this.#setting;
    coverage.addCell(drafter.name, drafted, accepted);
    if (task.narrow && accepted > 0) coverage.add("narrow");
    const difference = differenceOf(expected, served, drafting !== null);
    const counts = { tokens: served.ids.length, rounds, drafted, accepted };
    const figures = `${counts.tokens} tokens in ${rounds} rounds, ${accepted} of ${drafted} drafts`;
    return {
      ok: difference === null,
      detail: difference === null ? figures : `${difference} (${figures})`,
      counts,
    };
  }
}

/** What a cell's streams did. */
type ReplyCounts = Record<"tokens" | "rounds" | "drafted" | "accepted", number>;

function sumOf(all: readonly ReplyCounts[]): ReplyCounts {
  const sum = (field: keyof ReplyCounts) => all.reduce((total, counts) => total + counts[field], 0);
  return {
    tokens: sum("tokens"),
    rounds: sum("rounds"),
    drafted: sum("drafted"),
    accepted: sum("accepted"),
  };
}

/** Ends at a random token: by the length asked for, or as by a stop string. */
function cutShort(asked: Asked, random: Random): Asked {
  const tokens = 1 + random(asked.maxTokens);
  return random(2) === 0 ? { ...asked, maxTokens: tokens } : { ...asked, stopAfter: tokens };
}
