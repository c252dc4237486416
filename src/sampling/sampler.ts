import type { Candidates } from "../backend/candidates.ts";
import { invariant } from "../errors.ts";
import type { Position, TokenId } from "../ids.ts";
import { adjusts } from "./adjust.ts";
import { AdjustedRows } from "./adjusted-rows.ts";
import { type DrawConstraint, hasToken, type TokenSet } from "./constraint.ts";
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
  readonly #constraint: DrawConstraint | null;

  constructor(
    params: SamplingParams,
    promptIds: readonly TokenId[],
    constraint: DrawConstraint | null = null,
  ) {
    this.#params = params;
    this.#adjusted = adjusts(params.adjust) ? new AdjustedRows(params.adjust, promptIds) : null;
    this.#constraint = constraint;
  }

  /**
   * How many of a row's first candidates a draw reads; 0 means all of them. Adjustments and
   * constraints need all: a token may rise from anywhere.
   */
  get candidatesNeeded(): number {
    return this.#adjusted || this.#constraint?.narrows ? 0 : candidatesNeeded(this.#params);
  }

  /**
   * The token at `position`, which is not committed by that.
   * @param candidates at least the first `candidatesNeeded` of the row, in order
   * @param position absolute: the index the drawn token will have in its stream
   */
  draw(candidates: Candidates, position: Position): TokenId {
    const forced = this.#constraint?.forced() ?? null;
    if (forced !== null) return forced;
    const allowed = this.#constraint?.allowed() ?? null;
    const count = candidatesNeeded(this.#params);
    const row = this.#adjusted?.reorder(candidates, allowed ? 0 : count) ?? candidates;
    return drawToken(allowed ? within(row, allowed, count) : row, this.#params, position);
  }

  /** Tells of a token that the reply has from now on, in the reply's order and once each. */
  commit(id: TokenId): void {
    this.#adjusted?.commit(id);
    this.#constraint?.commit(id);
  }
}

/** The first `count` candidates that are in a set (0: all), in their order: of these draws choose. */
function within({ ids, logits }: Candidates, allowed: TokenSet, count: number): Candidates {
  const most = count === 0 ? ids.length : Math.min(count, ids.length);
  const ownIds = new Int32Array(most);
  const ownLogits = new Float32Array(most);
  let kept = 0;
  for (let at = 0; at < ids.length && kept < most; at++) {
    if (!hasToken(allowed, ids[at]!)) continue;
    ownIds[kept] = ids[at]!;
    ownLogits[kept] = logits[at]!;
    kept++;
  }
  invariant(kept > 0, "a constraint that allows no token of the vocabulary");
  return { ids: ownIds.subarray(0, kept), logits: ownLogits.subarray(0, kept) };
}
