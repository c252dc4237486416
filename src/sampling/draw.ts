import type { Candidates } from "../backend/candidates.ts";
import { invariant } from "../errors.ts";
import type { Position, TokenId } from "../ids.ts";
import { KeyedNoise } from "./keyed.ts";
import type { SamplingParams } from "./params.ts";
import { nucleusCount } from "./softmax.ts";

/** What a draw goes by once the logits are adjusted. */
export type DrawParams = Omit<SamplingParams, "adjust">;

/** Temperatures below this scale as this one does, so that a logit never overflows. */
export const temperatureMin = 1e-6;

/** How many of the scaled, descending logits survive top-p, then min-p. At least 1. */
function keptCount(scaled: Float64Array, params: DrawParams): number {
  let kept = params.topP < 1 ? nucleusCount(scaled, params.topP) : scaled.length;
  if (params.minP > 0) {
    const least = scaled[0]! + Math.log(params.minP);
    while (kept > 1 && scaled[kept - 1]! < least) kept--;
  }
  return kept;
}

/**
 * The token at `position`: top-k, temperature, top-p, min-p, then the largest scaled logit plus
 * keyed noise, the first among equals (docs/exactness.md, "Draws"). It depends only on the seed, the
 * position and the row's logits: never on drafts, company or earlier draws.
 * @param candidates at least the first `candidatesNeeded(params)` of the row, in order.
 * @param position absolute: the index the drawn token will have in its stream.
 */
export function drawToken(candidates: Candidates, params: DrawParams, position: Position): TokenId {
  const { ids, logits } = candidates;
  invariant(ids.length > 0 && ids.length === logits.length, "no candidates to draw from");
  if (params.temperature <= 0) return ids[0]!;
  const count = params.topK > 0 ? Math.min(params.topK, ids.length) : ids.length;
  const temperature = Math.max(params.temperature, temperatureMin);
  const scaled = new Float64Array(logits.subarray(0, count)).map((logit) => logit / temperature);
  const kept = keptCount(scaled, params);
  const noise = new KeyedNoise(params.seed, position);
  let best = 0;
  let bestScore = Number.NEGATIVE_INFINITY;
  for (let at = 0; at < kept; at++) {
    const score = scaled[at]! + noise.gumbel(ids[at]!);
    if (score > bestScore) {
      best = at;
      bestScore = score;
    }
  }
  return ids[best]!;
}
