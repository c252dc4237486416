import type { Candidates } from "../backend/candidates.ts";
import type { Position, TokenId } from "../ids.ts";
import { adjusts } from "./adjust.ts";
import { AdjustedRows } from "./adjusted-rows.ts";
import { drawToken } from "./draw.ts";
import { candidatesNeeded, type SamplingParams } from "./params.ts";

/**
 * Draws one stream's tokens. A draw depends on the seed, the position, the row's logits, the prompt
 * and the tokens committed before it: never on whether and how these were drafted, nor on draws that
 * were not committed.
 */
export class Sampler {
  readonly #params: SamplingParams;
  /** Null where no logit changes: draws are then `drawToken`'s, and nothing is counted. */
  readonly #adjusted: AdjustedRows | null;

  constructor(params: SamplingParams, promptIds: readonly TokenId[]) {
    this.#params = params;
    this.#adjusted = adjusts(params.adjust) ? new AdjustedRows(params.adjust, promptIds) : null;
  }

  /**
   * How many of a row's first candidates a draw reads; 0 means all of them. Adjustments need all: a
   * token may rise from anywhere.
   */
  get candidatesNeeded(): number {
    return this.#adjusted ? 0 : candidatesNeeded(this.#params);
  }

  /**
   * The token at `position`, which is not committed by that.
   * @param candidates at least the first `candidatesNeeded` of the row, in order
   * @param position absolute: the index the drawn token will have in its stream
   */
  draw(candidates: Candidates, position: Position): TokenId {
    const count = candidatesNeeded(this.#params);
    const row = this.#adjusted ? this.#adjusted.reorder(candidates, count) : candidates;
    return drawToken(row, this.#params, position);
  }

  /** Tells of a token that the reply has from now on, in the reply's order and once each. */
  commit(id: TokenId): void {
    this.#adjusted?.commit(id);
  }
}
