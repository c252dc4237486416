import type { Position } from "../../ids.ts";
import type { DrafterShape } from "../../model/drafter-shape.ts";
import { drawPosition, type Plan } from "../../model/plan.ts";
import type { ModelShape } from "../../model/shape.ts";
import type { PassResult } from "../backend.ts";
import { lazyDraws, orderedOrNot } from "../draw-candidates.ts";
import type { Places } from "./places.ts";
import type { Range, Readback } from "./readback.ts";
import { selectedOf, topOf, topOfPlan } from "./topk.ts";

type Draws = PassResult["draws"];

/** Brings what passes give, as it is after everything submitted so far. */
export class Results {
  readonly #readback: Readback;
  readonly #places: Places;

  constructor(readback: Readback, places: Places) {
    this.#readback = readback;
    this.#places = places;
  }

  async ofPass(plan: Plan, { vocabSize, hiddenSize }: ModelShape): Promise<PassResult> {
    const bytes = 4 * plan.ids.length * hiddenSize;
    const ranges = this.#places.taps.map((buffer) => ({ buffer, offset: 0, bytes }));
    const positionOf = (row: number) => drawPosition(plan, row);
    const { draws, others } = await this.#bring(plan, vocabSize, positionOf, ranges);
    return { draws, taps: others, selector: null };
  }

  /** A row of a block predicts the token of its own position, one of the first `headRows`. */
  async ofDraft(plan: Plan, headRows: number, drafter: DrafterShape): Promise<PassResult> {
    const rank = drafter.selector?.rank ?? 0;
    const rows = rank > 0 ? this.#places.arrays.rows.get("selector")! : null;
    const ranges = rows
      ? [{ buffer: rows.buffer, offset: 0, bytes: 4 * plan.draws.length * rows.stride }]
      : [];
    const positionOf = (row: number) => drawPosition(plan, row) - 1;
    const { draws, others } = await this.#bring(plan, headRows, positionOf, ranges);
    if (!rows) return { draws, taps: [], selector: null };
    const selector = new Float32Array(plan.draws.length * rank);
    for (const draw of plan.draws.keys()) {
      const at = draw * rows.stride;
      selector.set(others[0]!.subarray(at, at + rank), draw * rank);
    }
    return { draws, taps: [], selector };
  }

  /** The candidates of each draw, of which each chooses among the first `tokens`, and other ranges. */
  async #bring(
    plan: Plan,
    tokens: number,
    positionOf: (row: number) => Position,
    ranges: readonly Range[],
  ): Promise<{ draws: Draws; others: Float32Array[] }> {
    const { arrays, results } = this.#places;
    const { buffer, stride } = arrays.rows.get("logits")!;
    const wide = plan.draws.flatMap((draw, index) => (topOf(draw.candidates) > 0 ? [] : [index]));
    const top = topOfPlan(plan);
    const bytes = top === 0 ? 0 : 8 * (top + 1) * plan.draws.length;
    const [selected, ...parts] = await this.#readback.bring([
      { buffer: results, offset: 0, bytes },
      ...wide.map((index) => ({ buffer, offset: 4 * index * stride, bytes: 4 * tokens })),
      ...ranges,
    ]);
    const makers = plan.draws.map((draw, index) => {
      const position = positionOf(draw.row);
      const row = wide.indexOf(index);
      if (row >= 0) return () => orderedOrNot(parts[row]!, draw.candidates, position);
      const count = Math.min(draw.candidates, tokens);
      const record = selected!.subarray(2 * (top + 1) * index, 2 * (top + 1) * (index + 1));
      return () => selectedOf(record, count, position);
    });
    return { draws: lazyDraws(makers), others: parts.slice(wide.length) };
  }
}
