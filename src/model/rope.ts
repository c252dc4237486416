import type { DrafterRope } from "./drafter-shape.ts";
import type { ModelShape } from "./shape.ts";

/** How positions rotate a vector's leading dims: pair i by position · frequencies[i]. */
export interface Rotation {
  /** [dims / 2]. */
  readonly frequencies: readonly number[];
  /** What cosines and sines are multiplied by. */
  readonly scale: number;
}

export const rotationOf = ({ rotaryDim, ropeTheta }: ModelShape): Rotation => ({
  frequencies: plainFrequencies(rotaryDim, ropeTheta),
  scale: 1,
});

/** θ^(−2i / dims), i = 0 … dims / 2 − 1. */
const plainFrequencies = (dims: number, theta: number): number[] =>
  Array.from({ length: dims / 2 }, (_, i) => theta ** ((-2 * i) / dims));

/**
 * A drafter's rotation; with yarn, low frequencies are divided by its factor, high ones stay, and a
 * ramp lies between (Peng et al., "YaRN", arXiv 2309.00071, section 3.2).
 */
export function drafterRotation({ theta, yarn }: DrafterRope, headDim: number): Rotation {
  const plain = plainFrequencies(headDim, theta);
  if (!yarn) return { frequencies: plain, scale: 1 };
  const { factor, originalContext, betaFast, betaSlow, attentionFactor } = yarn;
  // The pair that turns this often over the original context.
  const pairOf = (turns: number) =>
    (headDim * Math.log(originalContext / (turns * 2 * Math.PI))) / (2 * Math.log(theta));
  const low = Math.max(0, Math.floor(pairOf(betaFast)));
  const high = Math.min(headDim - 1, Math.ceil(pairOf(betaSlow)));
  const span = Math.max(high - low, 0.001);
  const frequencies = plain.map((frequency, i) => {
    const stretched = Math.min(1, Math.max(0, (i - low) / span));
    return frequency * (1 - stretched) + (frequency / factor) * stretched;
  });
  return { frequencies, scale: attentionFactor };
}

/** Fills table [rows, dims] for rows at these positions: the cosines, then the sines, of each pair. */
export function writeRope(
  table: Float32Array,
  positions: Int32Array | Uint32Array,
  { frequencies, scale }: Rotation,
): void {
  const half = frequencies.length;
  positions.forEach((position, row) => {
    const at = row * 2 * half;
    for (let i = 0; i < half; i++) {
      table[at + i] = scale * Math.cos(position * frequencies[i]!);
      table[at + half + i] = scale * Math.sin(position * frequencies[i]!);
    }
  });
}
