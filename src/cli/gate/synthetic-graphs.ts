import type { LayerType, ModelShape } from "../../model/shape.ts";
import { tinyShape } from "../../model/tiny-shape.ts";
import { randomWeights } from "../../weights/random.ts";
import type { AffineBits, AffineGroupSize, Weights } from "../../weights/weights.ts";
import { randomInts } from "./timeline.ts";

/** A little model that nobody trained. */
export interface Graph {
  readonly name: string;
  readonly weights: Weights;
}

/** Every seven graphs have every format, every three each number of value heads a key head. */
const formats: readonly (AffineBits | "bf16")[] = [4, 8, 2, "bf16", 3, 6, 5];
const headDims = [32, 64, 128, 256];
const groupSizes: readonly AffineGroupSize[] = [32, 64, 128];

/** Columns that the f16 class sums in two slices; no layer more than needed, for they take their time. */
const wide = {
  hiddenSize: 1024,
  intermediateSize: 1088,
  layerTypes: ["linear", "full"],
} as const;

/** Graph `index` of a seed: what matters goes in turn, the rest is drawn. */
export function syntheticGraph(seed: number, index: number): Graph {
  const random = randomInts(seed + index);
  const pick = <T>(items: readonly T[]): T => items[random(items.length)]!;
  const bits = formats[index % formats.length]!;
  const headsPerKey = 1 + (index % 3);
  // A wide head's state is large, so it stands alone.
  const keyDim = headDims[index % 4]!;
  const valueDim = headDims[(index + Math.floor(index / 4)) % 4]!;
  const keyHeads = keyDim * valueDim > 8192 ? 1 : 2;
  const headDim = pick(headDims);
  const isWide = index % 12 === 11;
  const kvHeads = 1 + random(2);
  const shape = tinyShape({
    vocabSize: 200 + random(200),
    hiddenSize: 128,
    intermediateSize: pick([128, 256, 384]),
    layerTypes: layersOf(random),
    headDim,
    rotaryDim: headDim / 4,
    headCount: kvHeads * (1 + random(3)),
    kvHeadCount: kvHeads,
    linearKeyHeads: keyHeads,
    linearValueHeads: keyHeads * headsPerKey,
    linearKeyDim: keyDim,
    linearValueDim: valueDim,
    convTaps: pick([2, 3, 4, 4, 4, 5]),
    tiedHead: index % 2 === 1,
    ...(isWide && wide),
  });
  const groupSize = isWide ? 64 : pick(groupSizes);
  const weights = randomWeights(shape, { seed: seed + index, bits, groupSize });
  return { name: `graph ${index} (${describe(shape, bits)})`, weights };
}

/** A linear layer, a full one, and one or two more in any order. */
function layersOf(random: (below: number) => number): LayerType[] {
  const layers: LayerType[] = ["linear", "full", "linear"];
  if (random(2) === 1) layers.push("linear");
  const first = random(layers.length);
  return [...layers.slice(first), ...layers.slice(0, first)];
}

function describe(shape: ModelShape, bits: AffineBits | "bf16"): string {
  const { linearKeyHeads, linearValueHeads, linearKeyDim, linearValueDim, tiedHead } = shape;
  const width = shape.hiddenSize;
  const format = bits === "bf16" ? bits : `${bits}-bit`;
  const heads = `r = ${linearValueHeads / linearKeyHeads}, ${linearKeyDim} × ${linearValueDim}`;
  return `${format}, ${width} wide, ${heads}, ${tiedHead ? "tied" : "untied"}`;
}
