import type { Candidates } from "../backend/candidates.ts";
import { invariant } from "../errors.ts";
import type { TokenId } from "../ids.ts";
import { pairwiseSum } from "./softmax.ts";

/** A token's natural log probability. */
export interface Chance {
  readonly id: TokenId;
  readonly logprob: number;
}

/** That of a token that was drawn, and the likeliest at its place, the likeliest first. */
export interface DrawChances extends Chance {
  readonly top: readonly Chance[];
}

/**
 * How likely the model held a token: the log softmax of the row as it came, before temperature,
 * penalties and constraints (vLLM's `raw_logprobs`). Sums are in f64, in the row's order.
 * @param row all of its candidates
 * @param top how many of the likeliest are named
 */
export function chancesOf(row: Candidates, id: TokenId, top: number): DrawChances {
  const { ids, logits } = row;
  const most = logits[0]!;
  const scaled = new Float64Array(logits).map((logit) => Math.exp(logit - most));
  const total = Math.log(pairwiseSum(scaled, 0, scaled.length));
  const chanceAt = (at: number): Chance => ({
    id: ids[at]!,
    logprob: logits[at]! - most - total,
  });
  const at = ids.indexOf(id);
  invariant(at >= 0, `token ${id} has no logit in its row`);
  const named = Math.min(top, ids.length);
  return { ...chanceAt(at), top: Array.from({ length: named }, (_, place) => chanceAt(place)) };
}
