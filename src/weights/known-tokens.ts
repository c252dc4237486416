import type { Weights } from "./weights.ts";

/**
 * The same weights, whose head gives logits of the first `count` tokens alone. A vocabulary may be padded:
 * rows of the embedding that no token has must never be drawn (shared/spec/model.md 2).
 */
export const withKnownTokens = (weights: Weights, count: number): Weights => ({
  ...weights,
  shape: { ...weights.shape, vocabSize: Math.min(count, weights.shape.vocabSize) },
});

/** Rows of the embedding, padding among them. */
export const storedTokens = ({ matrix }: Pick<Weights, "matrix">): number =>
  matrix("embed_tokens").rows;
