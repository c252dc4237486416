import { drafterSizes } from "../../model/drafter-shape.ts";
import { draftPrefix } from "../../model/drafter-steps.ts";
import type { DraftStep } from "../../model/forward.ts";
import { draftAttendDefines, draftQueryGroups, draftSplits } from "./draft-cut.ts";
import type { Defines } from "./preprocess.ts";
import { type Bound, bindingOf, floatWord, type ProgramBuilder } from "./program.ts";
import { partAt } from "./projection-layout.ts";
import { isSoftware } from "./support.ts";

/** For kernels that write no projection's input: one text, whatever projections read. */
const noInput = { INPUT_F16: 0 };

/** What kernels that keep feature `index` of the residual stream need: places a slot, floats a place, and where. */
export function featureParameters(builder: ProgramBuilder, index: number): number[] {
  const { featureDim } = drafterSizes(builder.drafter!);
  const { featureRows } = builder.places.drafter!;
  return [featureRows, featureDim / 4, (index * builder.shape.hiddenSize) / 4];
}

/** The slots' features of the rows' places → the input of their projection. */
export async function addGather(builder: ProgramBuilder): Promise<void> {
  const { features, featureRows } = builder.places.drafter!;
  const quads = drafterSizes(builder.drafter!).featureDim / 4;
  await builder.addRowWise(
    "gather",
    {},
    [features, builder.buffer("features")],
    [quads, featureRows, builder.stride("features")],
    quads,
  );
}

/** In a keep: a path's features go to the places of a chain. */
export async function addFeatureMove(builder: ProgramBuilder): Promise<void> {
  const { features, featureRows } = builder.places.drafter!;
  const quads = drafterSizes(builder.drafter!).featureDim / 4;
  await builder.addKeep(
    "feature_move",
    noInput,
    [features],
    [quads, featureRows],
    ({ segments, moves }) => [moves ? Math.ceil(quads / 64) : 0, segments, 1],
  );
}

/** What `kernels/dynamic_taps.wgsl` needs of a sublayer's kernels, from parameter `first` on. */
export async function dynamicTaps(
  builder: ProgramBuilder,
  { base, side }: { readonly base: string; readonly side: 0 | 1 },
  first: number,
): Promise<{ defines: Defines; buffers: Bound[]; parameters: number[] }> {
  const kernels = builder.array("draftKernel");
  const { groupSize } = builder.drafter!.convolution!;
  return {
    defines: { KERNEL_SLICES: kernels.slices, KERNEL_PARAMS: first },
    buffers: [bindingOf(kernels), await builder.vector(base)],
    parameters: [side, kernels.stride, kernels.sliceStride, groupSize / 4],
  };
}

/** Before a sublayer it is a kernel of its own; what follows one is done by the next norm. */
export async function addDynamicConv(
  builder: ProgramBuilder,
  step: DraftStep & { op: "dynamicConv" },
): Promise<void> {
  const { base, side } = step;
  if (step.accumulate) {
    builder.pending = { update: builder.sublayer!, convolution: { base, side } };
    return;
  }
  const width = builder.shape.hiddenSize;
  const taps = await dynamicTaps(builder, { base, side }, 2);
  const stride = builder.stride("normed");
  await builder.addRowWise(
    "dynamic_conv",
    taps.defines,
    [builder.buffer("normed"), builder.buffer("draftMixed"), ...taps.buffers],
    [width, stride, ...taps.parameters],
    width / 4,
  );
}

/** Keys and values of all layers at once. */
export async function addContextRope(builder: ProgramBuilder): Promise<void> {
  const drafter = builder.drafter!;
  const layers = drafter.layers.length;
  const keys = builder.array("contextKeys");
  const values = builder.array("contextValues");
  const { kv } = builder.places.drafter!;
  const norms: number[] = [];
  for (const layer of drafter.layers.keys()) {
    const path = `${draftPrefix}layers.${layer}.self_attn.k_norm`;
    norms.push(...(await builder.tensors.vector(path)));
  }
  const { kvDim } = drafterSizes(drafter);
  await builder.add(
    "rope",
    { KV_BITS: kv.pages.bits, SLICES: keys.slices, QUERY_HEADS: 0, QUERY_VECTORS: 1, ...noInput },
    [
      // It has no queries: the kernel looks at neither of what stands for them.
      bindingOf(keys),
      bindingOf(keys),
      bindingOf(values),
      builder.upload("context norms", Float32Array.from(norms)),
      builder.buffer("draftRotated"),
      kv.keys[0]!.buffer,
      kv.values[0]!.buffer,
    ],
    [
      keys.stride,
      keys.stride,
      values.stride,
      builder.stride("draftRotated"),
      floatWord(builder.normEps),
      keys.sliceStride,
      partAt(kvDim, kvDim),
      kv.keys[0]!.size / (kv.pages.bits / 8),
    ],
    ({ rows }) => [layers * drafter.kvHeadCount, rows, 1],
  );
}

export async function addDraftRope(
  builder: ProgramBuilder,
  module: string,
  layer: number,
): Promise<void> {
  const drafter = builder.drafter!;
  const { kv } = builder.places.drafter!;
  const query = builder.array("draftQuery");
  const norms = Float32Array.from([
    ...(await builder.tensors.vector(`${module}.q_norm`)),
    ...(await builder.tensors.vector(`${module}.k_norm`)),
  ]);
  await builder.add(
    "rope",
    {
      KV_BITS: kv.pages.bits,
      SLICES: query.slices,
      QUERY_HEADS: drafter.headCount,
      QUERY_VECTORS: 1,
      ...noInput,
    },
    [
      bindingOf(query),
      builder.buffer("draftKey"),
      builder.buffer("draftValue"),
      builder.upload(`${module} norms`, norms),
      builder.buffer("draftRotated"),
      kv.keys[layer]!,
      kv.values[layer]!,
    ],
    [
      query.stride,
      builder.stride("draftKey"),
      builder.stride("draftValue"),
      builder.stride("draftRotated"),
      floatWord(builder.normEps),
      query.sliceStride,
    ],
    ({ rows }) => [drafter.headCount + drafter.kvHeadCount, rows, 1],
  );
}

/** Partial results over parts of the keys, then their merge. */
export async function addDraftAttend(builder: ProgramBuilder, layer: number): Promise<void> {
  const drafter = builder.drafter!;
  const { places } = builder;
  const { kv } = places.drafter!;
  const { window, causal } = drafter.layers[layer]!;
  const defines = draftAttendDefines(drafter, isSoftware(builder.device));
  const seen = [window ?? 0, causal ? 1 : 0];
  await builder.add(
    "draft_attend",
    { KV_BITS: kv.pages.bits, ...defines, ...noInput },
    [
      builder.buffer("draftRotated"),
      kv.keys[layer]!,
      kv.values[layer]!,
      places.partialOuts,
      places.partialStats,
    ],
    [...seen, builder.stride("draftRotated") / 4],
    ({ segments }) => [segments, drafter.kvHeadCount * draftQueryGroups(drafter), draftSplits],
  );
  await builder.add(
    "draft_merge",
    defines,
    [places.partialOuts, places.partialStats, builder.buffer("draftAttended")],
    [...seen, builder.stride("draftAttended")],
    ({ rows }) => [drafter.headCount, rows, 1],
  );
}
