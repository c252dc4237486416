import { invariant } from "../errors.ts";
import type { TokenId } from "../ids.ts";
import { windowRowsMax } from "../limits.ts";
import { isTree } from "../model/plan.ts";
import type { Codebooks, Lattice } from "./lattice.ts";
import type { Drafts, Worth } from "./proposal.ts";
import { type DraftPoint, RowScorer, ranksBefore } from "./scores.ts";

/** Of one token; more are hardly ever the right one. */
const childrenMax = 4;
/** Divides scores with noise before they become chances: it spreads them further than chances are. */
const softening = 1.5;

/** A token that is in the tree, or may come into it. */
interface Node {
  readonly id: TokenId;
  /** The row of the lattice that it comes from. */
  readonly row: number;
  /** When its parent came into the tree; −1: the pending token. */
  readonly parent: number;
  /** Its place among its siblings, from 0. */
  readonly rank: number;
  /** The logarithm of the chance that the path up to here is right. */
  readonly value: number;
}

/**
 * The `nodes` likeliest tokens of a lattice, counting all ways to reach them: best first by the summed
 * log-softmax of their scores; among equals the older parent, then the better score, then the lower id.
 *
 * They are listed depth first, the best child of each token first. So the likeliest path, which is
 * `chainDrafts`', is a prefix of them, and most have the row before their own as parent: a backend scans
 * those rows as it scans a chain, and goes back to replay a path only where a branch begins.
 * @param nodes at most 15, a window's rows after the pending token
 * @param worth leaves out the least likely
 */
export function treeDrafts(
  lattice: Lattice,
  codebooks: Codebooks | null,
  point: DraftPoint,
  nodes: number,
  worth: Worth = (chances) => chances.length,
): Drafts {
  invariant(nodes < windowRowsMax, `a tree of ${nodes} nodes`);
  const scorer = new RowScorer(lattice, codebooks, point);
  const tree: Node[] = [];
  const waiting = children(scorer, 0, point.anchor, -1, 0);
  while (tree.length < nodes && waiting.length > 0) {
    const next = takeBest(waiting);
    waiting.push(...children(scorer, next.row + 1, next.id, tree.length, next.value));
    tree.push(next);
  }
  return depthFirst(tree.slice(0, worth(tree.map(({ value }) => Math.exp(value)))));
}

/** The best candidates of a row after `previous`, best first. */
function children(
  scorer: RowScorer,
  row: number,
  previous: TokenId,
  parent: number,
  value: number,
): Node[] {
  if (row === scorer.rows) return [];
  const ids = scorer.ids(row);
  const scores = scorer.scores(row, previous);
  const chances = logSoftmax(scores, scorer.draws ? softening : 1);
  return Array.from(ids.keys())
    .filter((at) => chances[at]! > Number.NEGATIVE_INFINITY)
    .sort((a, b) => (ranksBefore(scores[a]!, ids[a]!, scores[b]!, ids[b]!) ? -1 : 1))
    .slice(0, childrenMax)
    .map((at, rank) => ({ id: ids[at]!, row, parent, rank, value: value + chances[at]! }));
}

function logSoftmax(scores: Float64Array, divisor: number): Float64Array {
  const softened = scores.map((score) => score / divisor);
  const most = Math.max(...softened);
  const total = softened.reduce((sum, score) => sum + Math.exp(score - most), 0);
  return softened.map((score) => score - most - Math.log(total));
}

function takeBest(waiting: Node[]): Node {
  let best = 0;
  for (let at = 1; at < waiting.length; at++) {
    if (comesBefore(waiting[at]!, waiting[best]!)) best = at;
  }
  return waiting.splice(best, 1)[0]!;
}

function comesBefore(node: Node, other: Node): boolean {
  if (node.value !== other.value) return node.value > other.value;
  return node.parent === other.parent ? node.rank < other.rank : node.parent < other.parent;
}

/** Lays the nodes out; siblings came into the tree best first. */
function depthFirst(tree: readonly Node[]): Drafts {
  const ids: TokenId[] = [];
  const parents: number[] = [];
  const lay = (parent: number, laidParent: number): void => {
    for (const [at, node] of tree.entries()) {
      if (node.parent !== parent) continue;
      parents.push(laidParent);
      lay(at, ids.push(node.id) - 1);
    }
  };
  lay(-1, -1);
  return { ids, parents: isTree({ parents }) ? parents : null };
}
