import { InputError } from "../../errors.ts";
import { windowRowsMax } from "../../limits.ts";
import type { ModelShape } from "../../model/shape.ts";
import { transposed } from "../arrays.ts";
import type { Defines } from "./preprocess.ts";
import { floatWord, type ProgramBuilder } from "./program.ts";
import { powerOfTwoDivisor } from "./support.ts";

/** What every adapter gives, so that no bit depends on what one gives beyond. */
const threadsMax = 256;
export const workgroupBytesMax = 32_768;

/** In how many parts gdn.wgsl may cut the key dim's quads; the first that divides them and fits is taken. */
const partCounts = [4, 8, 16, 32, 2, 1, 3, 5, 6, 7, 9, 10, 12, 14, 11, 13];

/** Rows of a block of which a thread makes an item: they are held in registers. */
const eachMax = 4;

/** What the kernels share of a layout (`gdn_common.wgsl`). */
export const logRows: Defines = { WINDOW_ROWS: windowRowsMax };

/**
 * One dispatch for everything between a linear layer's projections (`gdn.wgsl`), and one that commits
 * windows (`gdn_keep.wgsl`).
 */
export async function addGdn(
  builder: ProgramBuilder,
  module: string,
  layer: number,
): Promise<void> {
  const { shape, places, options } = builder;
  const { linearKeyDim, linearValueDim, linearValueHeads } = shape;
  const { maxComputeWorkgroupStorageSize } = builder.device.limits;
  const layout = gdnLayout(shape, Math.min(workgroupBytesMax, maxComputeWorkgroupStorageSize));
  const { slices, sliceStride } = builder.array("qkv");
  const copies = options.gdnPath === "copy";
  const state = places.states[layer]!;
  const history = places.histories[layer]!;
  const log = places.windowLogs[layer]!;
  const defines = { ...logRows, ...layout, SLICES: slices };
  const chains = await builder.kernel("gdn", { ...defines, TREE: 0 });
  const trees = await builder.kernel("gdn", { ...defines, TREE: 1 });
  builder.push(
    [
      builder.buffer("qkv"),
      builder.buffer("z"),
      builder.buffer("b"),
      builder.buffer("a"),
      builder.upload(`${module} vectors`, await vectorsOf(builder, module)),
      history,
      state,
      builder.buffer("mixed"),
      log,
    ],
    [
      builder.stride("qkv") / 4,
      builder.stride("z") / 4,
      builder.stride("b"),
      builder.stride("a"),
      builder.stride("mixed"),
      floatWord(shape.normEps),
      copies ? options.slots : 0,
      sliceStride,
    ],
    ({ scans }) => (scans > 0 ? trees : chains),
    ({ segments, scans }) => [linearValueHeads, scans > 0 ? scans : segments, 1],
  );
  if (copies) {
    const quads = (linearValueHeads * linearKeyDim * linearValueDim) / 4;
    await builder.add("gdn_copy", logRows, [state], [options.slots], ({ segments }) => [
      Math.ceil(quads / 256),
      segments,
      1,
    ]);
  }
  if (layer % places.layersABuffer === 0) await addKeep(builder, layer);
}

/** Commits the windows of the layers whose states lie in the same buffer as this one's, which is the first. */
async function addKeep(builder: ProgramBuilder, first: number): Promise<void> {
  const { shape, places, sizes } = builder;
  const parts = [places.windowLogs, places.histories, places.states];
  const layers = Math.min(places.layersABuffer, sizes.linearLayers - first);
  await builder.addKeep(
    "gdn_keep",
    { ...logRows, ...keepLayout(shape) },
    parts.map((part) => part[first]!.buffer),
    parts.map((part) => (layers > 1 ? part[first + 1]!.offset / 16 : 0)),
    ({ segments }) => [shape.linearValueHeads, segments, layers],
  );
}

/** Taps, norm weight, and each value head's (rate, bias, 0, 0). */
async function vectorsOf({ tensors, shape }: ProgramBuilder, module: string) {
  const taps = transposed(await tensors.vector(`${module}.conv1d`), shape.convTaps);
  const norm = await tensors.vector(`${module}.norm`);
  const logRates = await tensors.vector(`${module}.A_log`);
  const biases = await tensors.vector(`${module}.dt_bias`);
  const rates = [...logRates].flatMap((rate, head) => [-Math.exp(rate), biases[head]!, 0, 0]);
  return Float32Array.from([...taps, ...norm, ...rates]);
}

/**
 * How gdn.wgsl cuts a head's state over threads, and how many rows it prepares at a time. The orders of
 * its sums are PARTS and LANES, which come from the head's dims, and PARTS from the room that there is.
 * @throws InputError where a head is too large for a workgroup, or has too few columns for its key dim
 */
export function gdnLayout(shape: ModelShape, bytesMax: number): Defines {
  const { linearKeyDim, linearValueDim } = shape;
  const keyQuads = linearKeyDim / 4;
  const valueQuads = linearValueDim / 4;
  const valuePairs = linearValueDim / 2;
  const items = 2 * keyQuads + valueQuads;
  const tail = (shape.convTaps - 1) * items;
  const lanes = powerOfTwoDivisor(keyQuads, powerOfTwoDivisor(valuePairs, 8));
  for (const parts of partCounts.filter((count) => keyQuads % count === 0)) {
    const threads = parts * valuePairs;
    if (threads > threadsMax || threads < items) continue;
    for (let block = 8; block >= 1; block /= 2) {
      const each = Math.ceil(block / Math.floor(threads / items));
      const quads = tail + block * items + 2 * threads + block * valueQuads;
      const squares = block * (Math.max(2 * keyQuads, valuePairs) + 2 * lanes);
      const bytes = 16 * quads + 4 * squares + 8 * block;
      if (bytes > bytesMax || each > eachMax || block > threads) continue;
      return {
        PARTS: parts,
        PER_PART: linearKeyDim / parts,
        QUADS: keyQuads / parts,
        LANES: lanes,
        THREADS: threads,
        BLOCK: block,
        EACH: each,
        DEPTH: shape.convTaps - 1,
        // Quads of a block's outputs, and of the tail, that a thread takes.
        GIVEN: Math.ceil((block * valueQuads) / threads),
        TAIL: Math.ceil(tail / threads),
      };
    }
  }
  throw new InputError(
    `The webgpu backend can't cut GDN heads of ${linearKeyDim} × ${linearValueDim} into threads of this ` +
      "device. Use --backend wasm.",
  );
}

/** How gdn_keep.wgsl cuts it; no bit depends on that. */
export function keepLayout({ linearKeyDim, linearValueDim }: ModelShape): Defines {
  const valueQuads = linearValueDim / 4;
  let parts = powerOfTwoDivisor(linearKeyDim / 4, 8);
  while (parts > 1 && parts * valueQuads > threadsMax) parts /= 2;
  return {
    PER_PART: linearKeyDim / parts,
    QUADS: linearKeyDim / 4 / parts,
    THREADS: parts * valueQuads,
    ROWS: 4,
  };
}
