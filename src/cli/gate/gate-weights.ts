import type { ModelShape } from "../../model/shape.ts";
import { tinyShape } from "../../model/tiny-shape.ts";
import { randomWeights } from "../../weights/random.ts";
import type { AffineBits, AffineGroupSize, Weights } from "../../weights/weights.ts";
import type { GateRun } from "./gate-run.ts";
import { withWeights } from "./open-weights.ts";
import type { GateOptions } from "./options.ts";

export interface GateWeights {
  readonly name: string;
  readonly weights: Weights;
}

type Synthetic = readonly [
  name: string,
  changes: Partial<ModelShape>,
  bits: AffineBits | "bf16",
  groupSize: AffineGroupSize,
];

const synthetic: readonly Synthetic[] = [
  ["4-bit g32, r = 3", {}, 4, 32],
  ["8-bit g64, r = 1, tied", { linearValueHeads: 2, tiedHead: true }, 8, 64],
  ["3-bit g64, r = 2, wide heads", { linearValueHeads: 4, headDim: 256, rotaryDim: 64 }, 3, 64],
  ["6-bit g128, one KV head", { kvHeadCount: 1, hiddenSize: 256, intermediateSize: 384 }, 6, 128],
  ["bf16, odd vocabulary", { vocabSize: 501 }, "bf16", 64],
  ["2-bit g32, 5 taps", { convTaps: 5 }, 2, 32],
  ["5-bit g32, key dim 64", { linearKeyDim: 64, linearValueDim: 128 }, 5, 32],
];

/**
 * Calls `use` with random weights of odd little shapes, then with the model asked for: a slow backend gets
 * through a few of them in the sample's time, and may not get through a model.
 */
export async function eachGateWeights(
  run: GateRun,
  options: GateOptions,
  use: (model: GateWeights) => Promise<void>,
): Promise<void> {
  // One that can't be read is told before any cell, and not after all others.
  await withWeights(options.model, async () => {});
  for (const [name, changes, bits, groupSize] of synthetic) {
    if (run.skips(name)) continue;
    const weights = randomWeights(tinyShape(changes), { seed: 7, bits, groupSize });
    await use({ name, weights });
  }
  if (run.skips(options.model)) return;
  await withWeights(options.model, (weights) => use({ name: options.model, weights }));
}
