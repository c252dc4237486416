import type { DrafterShape } from "./drafter-shape.ts";
import type { ModelShape } from "./shape.ts";

/** Sizes in which the released Qwen3.5 / 3.6 / 3.8 dense models differ. */
interface Sizes {
  readonly hiddenSize: number;
  readonly intermediateSize: number;
  readonly layers: number;
  readonly heads: readonly [query: number, kv: number];
  readonly valueHeads: number;
  readonly tied: boolean;
}

const sizes: ReadonlyMap<string, Sizes> = new Map([
  [
    "0.8b",
    {
      hiddenSize: 1024,
      intermediateSize: 3584,
      layers: 24,
      heads: [8, 2],
      valueHeads: 16,
      tied: true,
    },
  ],
  [
    "2b",
    {
      hiddenSize: 2048,
      intermediateSize: 6144,
      layers: 24,
      heads: [8, 2],
      valueHeads: 16,
      tied: true,
    },
  ],
  [
    "4b",
    {
      hiddenSize: 2560,
      intermediateSize: 9216,
      layers: 32,
      heads: [16, 4],
      valueHeads: 32,
      tied: true,
    },
  ],
  [
    "9b",
    {
      hiddenSize: 4096,
      intermediateSize: 12288,
      layers: 32,
      heads: [16, 4],
      valueHeads: 32,
      tied: false,
    },
  ],
  [
    "27b",
    {
      hiddenSize: 5120,
      intermediateSize: 17408,
      layers: 64,
      heads: [24, 4],
      valueHeads: 48,
      tied: false,
    },
  ],
]);

export const shapeNames: readonly string[] = [...sizes.keys()];

/** A released model's shape by its name; every fourth layer is full attention. */
export function namedShape(name: string): ModelShape | null {
  const found = sizes.get(name);
  if (!found) return null;
  const { hiddenSize, intermediateSize, layers, heads, valueHeads, tied } = found;
  return {
    vocabSize: 248_320,
    hiddenSize,
    intermediateSize,
    layerTypes: Array.from({ length: layers }, (_, i) => ((i + 1) % 4 === 0 ? "full" : "linear")),
    headCount: heads[0],
    kvHeadCount: heads[1],
    headDim: 256,
    rotaryDim: 64,
    ropeTheta: 1e7,
    linearKeyHeads: 16,
    linearValueHeads: valueHeads,
    linearKeyDim: 128,
    linearValueDim: 128,
    convTaps: 4,
    normEps: 1e-6,
    tiedHead: tied,
    contextMax: 262_144,
  };
}

/** A DFlash2 drafter for a shape, of the proportions of Qwen3.8-27B-DFlash2 (spec of z-lab's config). */
export function namedDrafter(target: ModelShape): DrafterShape {
  const layers = target.layerTypes.length;
  return {
    kind: "dflash2",
    vocabSize: target.vocabSize,
    hiddenSize: target.hiddenSize,
    intermediateSize: target.intermediateSize,
    layers: Array.from({ length: 5 }, () => ({ window: 2048, causal: false })),
    headCount: 32,
    kvHeadCount: 8,
    headDim: 128,
    rope: { theta: 1e7, yarn: null },
    normEps: 1e-6,
    featureLayers: Array.from({ length: 5 }, (_, i) => 1 + Math.round((i * (layers - 4)) / 4)),
    blockRows: 8,
    maskId: 248_070,
    candidates: 16,
    convolution: { groupSize: 16 },
    selector: { rank: 256 },
  };
}
