import type { TokenId } from "../ids.ts";

/** What is done to a row's logits before anything is drawn. Made by `resolveAdjustments`. */
export interface LogitAdjustments {
  /** Over 0, for tokens of the prompt and the reply: over 1 makes them less likely; 1 is off. */
  readonly repetitionPenalty: number;
  /** −2 to 2, taken off tokens that the reply has; 0 is off. */
  readonly presencePenalty: number;
  /** −2 to 2, taken off a token once for each time that the reply has it; 0 is off. */
  readonly frequencyPenalty: number;
  /** −100 to 100, added to a token's logit. Empty is off. */
  readonly logitBias: ReadonlyMap<TokenId, number>;
}

/** Leaves every logit as it is. */
export const noAdjustments: LogitAdjustments = {
  repetitionPenalty: 1,
  presencePenalty: 0,
  frequencyPenalty: 0,
  logitBias: new Map(),
};

/** Whether any logit may change. */
export function adjusts(adjust: LogitAdjustments): boolean {
  const { repetitionPenalty, presencePenalty, frequencyPenalty, logitBias } = adjust;
  if (repetitionPenalty !== 1 || presencePenalty !== 0 || frequencyPenalty !== 0) return true;
  return logitBias.size > 0;
}

/** What a stream has of one token so far. */
export interface TokenUse {
  /** Whether the prompt or the reply has it. */
  readonly seen: boolean;
  /** How often the reply has it. */
  readonly count: number;
  readonly bias: number;
}

/** The largest finite f32: a huge penalty must not make a logit infinite. */
const logitMax = (2 - 2 ** -23) * 2 ** 127;

/**
 * vLLM's penalties in vLLM's order, then the bias (docs/exactness.md, "Draws"). Every operation is
 * one of f64; the result is rounded once, to f32. Where nothing acts, the bits stay.
 */
export function adjustLogit(logit: number, use: TokenUse, adjust: LogitAdjustments): number {
  const { repetitionPenalty, presencePenalty, frequencyPenalty } = adjust;
  let adjusted = logit;
  if (use.seen) adjusted = logit > 0 ? logit / repetitionPenalty : logit * repetitionPenalty;
  adjusted -= frequencyPenalty * use.count;
  if (use.count > 0) adjusted -= presencePenalty;
  adjusted += use.bias;
  return Math.fround(Math.min(Math.max(adjusted, -logitMax), logitMax));
}
