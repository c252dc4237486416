import type { TokenId } from "../ids.ts";
import type { Codebooks, Lattice } from "./lattice.ts";
import type { Worth } from "./proposal.ts";
import { type DraftPoint, RowScorer, ranksBefore } from "./scores.ts";

/**
 * The likeliest walk through a lattice: at each row the best candidate after the token that was taken
 * before it, the lowest id among equals. With temperature 0 it is the reference drafter's greedy path.
 * @param codebooks those of the lattice's drafter; null for DFlash
 * @param most how many drafts are wanted; a lattice may have fewer rows
 * @param worth cuts the walk where what follows is too unlikely
 */
export function chainDrafts(
  lattice: Lattice,
  codebooks: Codebooks | null,
  point: DraftPoint,
  most: number,
  worth: Worth = (chances) => chances.length,
): TokenId[] {
  const scorer = new RowScorer(lattice, codebooks, point);
  const drafts: TokenId[] = [];
  const chances: number[] = [];
  let previous = point.anchor;
  let path = 1;
  for (let row = 0; row < Math.min(most, scorer.rows); row++) {
    const [ids, scores] = [scorer.ids(row), scorer.scores(row, previous)];
    const at = best(ids, scores);
    previous = ids[at]!;
    drafts.push(previous);
    const total = scores.reduce((sum, score) => sum + Math.exp(score - scores[at]!), 0);
    path /= total;
    chances.push(path);
  }
  return drafts.slice(0, worth(chances));
}

function best(ids: Int32Array, scores: Float64Array): number {
  let first = 0;
  for (let at = 1; at < ids.length; at++) {
    if (ranksBefore(scores[at]!, ids[at]!, scores[first]!, ids[first]!)) first = at;
  }
  return first;
}
