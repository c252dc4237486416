import { attendDefines, blockSizes, headBlocks, mergeDefines } from "./attention-cut.ts";
import type { Kernel } from "./pipelines.ts";
import type { Defines } from "./preprocess.ts";
import { floatWord, type ProgramBuilder } from "./program.ts";
import { isSoftware } from "./support.ts";

/** For kernels that write no projection's input: one text, whatever projections read. */
const noInput = { INPUT_F16: 0 };

export async function addRope(
  builder: ProgramBuilder,
  module: string,
  layer: number,
): Promise<void> {
  const { shape, places } = builder;
  const queryGate = builder.array("queryGate");
  const norms = Float32Array.from([
    ...(await builder.tensors.vector(`${module}.q_norm`)),
    ...(await builder.tensors.vector(`${module}.k_norm`)),
  ]);
  await builder.add(
    "rope",
    {
      KV_BITS: places.kv.pages.bits,
      SLICES: queryGate.slices,
      QUERY_HEADS: shape.headCount,
      // A head's query, then its gate.
      QUERY_VECTORS: 2,
      ...noInput,
    },
    [
      builder.buffer("queryGate"),
      builder.buffer("key"),
      builder.buffer("value"),
      builder.upload(`${module} norms`, norms),
      builder.buffer("query"),
      places.kv.keys[layer]!,
      places.kv.values[layer]!,
    ],
    [
      builder.stride("queryGate"),
      builder.stride("key"),
      builder.stride("value"),
      builder.stride("query"),
      floatWord(shape.normEps),
      queryGate.sliceStride,
    ],
    ({ rows }) => [shape.headCount + shape.kvHeadCount, rows, 1],
  );
}

/** Partial results over spans of the keys, then their merge; and what moves a kept path's rows. */
export async function addAttend(builder: ProgramBuilder, layer: number): Promise<void> {
  const { shape, places } = builder;
  const variants = new Map<number, Kernel>();
  const software = isSoftware(builder.device);
  const kernelFor = async (rows: number, tree: boolean) => {
    const defines = attendDefines(shape, rows, tree, software);
    return await builder.kernel("attend", {
      ...defines,
      KV_BITS: places.kv.pages.bits,
      ...noInput,
    });
  };
  for (const rows of blockSizes(shape, software)) variants.set(rows, await kernelFor(rows, false));
  const tree = await kernelFor(1, true);
  const keys = places.kv.keys[layer]!;
  const values = places.kv.values[layer]!;
  builder.push(
    [builder.buffer("query"), keys, values, places.partialOuts, places.partialStats],
    [builder.stride("query") / 4],
    ({ attention, scans }) => (scans > 0 ? tree : variants.get(attention.blockRows)!),
    ({ attention }) => [
      attention.blocks.length,
      shape.kvHeadCount * headBlocks(shape),
      attention.units,
    ],
  );
  await addMerge(builder);
  await builder.addKeep(
    "kv_move",
    { KV_WORDS: places.kv.pages.bits / 8, ...noInput },
    [keys, values],
    [],
    ({ segments, moves }) => [moves ? shape.kvHeadCount : 0, segments, 1],
  );
}

async function addMerge(builder: ProgramBuilder): Promise<void> {
  const { shape, places } = builder;
  const queryGate = builder.array("queryGate");
  const sliced = { SLICES: queryGate.slices };
  const short: Defines = { ...mergeDefines(shape, true), ...sliced };
  const long: Defines = { ...mergeDefines(shape, false), ...sliced };
  const shortKernel = await builder.kernel("merge", short);
  const longKernel = await builder.kernel("merge", long);
  const slices = (columns: number) => Math.ceil(shape.headDim / 4 / columns);
  builder.push(
    [
      places.partialOuts,
      places.partialStats,
      builder.buffer("queryGate"),
      builder.buffer("attended"),
    ],
    [queryGate.stride / 4, builder.stride("attended"), queryGate.sliceStride / 4],
    ({ attention }) => (attention.span === 1 ? shortKernel : longKernel),
    ({ attention, rows }) => {
      const columns = (attention.span === 1 ? short : long)["COLUMNS"]!;
      return [shape.headCount * slices(columns), rows, 1];
    },
  );
}
