import type { TokenId } from "../ids.ts";
import type { Codebooks, Lattice } from "./lattice.ts";
import { type DraftPoint, RowScorer, ranksBefore } from "./scores.ts";

/**
 * The likeliest walk through a lattice: at each row the best candidate after the token that was taken
 * before it, the lowest id among equals. With temperature 0 it is the reference drafter's greedy path.
 * @param codebooks those of the lattice's drafter; null for DFlash
 * @param most how many drafts are wanted; a lattice may have fewer rows
 */
export function chainDrafts(
  lattice: Lattice,
  codebooks: Codebooks | null,
  point: DraftPoint,
  most: number,
): TokenId[] {
  const scorer = new RowScorer(lattice, codebooks, point);
  const drafts: TokenId[] = [];
  let previous = point.anchor;
  for (let row = 0; row < Math.min(most, scorer.rows); row++) {
    previous = best(scorer.ids(row), scorer.scores(row, previous));
    drafts.push(previous);
  }
  return drafts;
}

function best(ids: Int32Array, scores: Float64Array): TokenId {
  let first = 0;
  for (let at = 1; at < ids.length; at++) {
    if (ranksBefore(scores[at]!, ids[at]!, scores[first]!, ids[first]!)) first = at;
  }
  return ids[first]!;
}
