import type { ModelShape } from "./shape.ts";

/**
 * Fills table [rows, rotaryDim] for rows at these positions: the cosines, then the sines, of
 * position · θ^(−2i / rotaryDim), i = 0 … rotaryDim / 2 − 1.
 */
export function writeRope(
  table: Float32Array,
  positions: Int32Array | Uint32Array,
  { rotaryDim, ropeTheta }: ModelShape,
): void {
  const half = rotaryDim / 2;
  const frequencies = Array.from({ length: half }, (_, i) => ropeTheta ** ((-2 * i) / rotaryDim));
  positions.forEach((position, row) => {
    const at = row * rotaryDim;
    for (let i = 0; i < half; i++) {
      table[at + i] = Math.cos(position * frequencies[i]!);
      table[at + half + i] = Math.sin(position * frequencies[i]!);
    }
  });
}
