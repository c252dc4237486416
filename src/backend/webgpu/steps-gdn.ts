import { InputError } from "../../errors.ts";
import { windowRowsMax } from "../../limits.ts";
import type { ModelShape } from "../../model/shape.ts";
import { transposed } from "../arrays.ts";
import type { Defines } from "./preprocess.ts";
import { floatWord, type ProgramBuilder } from "./program.ts";
import { powerOfTwoDivisor } from "./support.ts";

/** What every adapter gives, so that no bit depends on what one gives beyond. */
const threadsMax = 256;
const workgroupBytesMax = 32_768;

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
  await builder.add(
    "gdn",
    { ...layout, SLICES: slices },
    [
      builder.buffer("qkv"),
      builder.buffer("z"),
      builder.buffer("b"),
      builder.buffer("a"),
      await builder.upload(`${module} vectors`, await vectorsOf(builder, module)),
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
    ({ segments }) => [linearValueHeads, segments, 1],
  );
  if (copies) {
    const quads = (linearValueHeads * linearKeyDim * linearValueDim) / 4;
    await builder.add("gdn_copy", layout, [state], [options.slots], ({ segments }) => [
      Math.ceil(quads / 256),
      segments,
      1,
    ]);
  }
  await builder.addKeep("gdn_keep", layout, [log, history, state], ({ segments }) => [
    linearValueHeads,
    segments,
    1,
  ]);
}

/** Taps, norm weight, and each value head's (rate, bias, 0, 0). */
async function vectorsOf({ weights, shape }: ProgramBuilder, module: string) {
  const taps = transposed(await weights.vector(`${module}.conv1d`), shape.convTaps);
  const norm = await weights.vector(`${module}.norm`);
  const logRates = await weights.vector(`${module}.A_log`);
  const biases = await weights.vector(`${module}.dt_bias`);
  const rates = [...logRates].flatMap((rate, head) => [-Math.exp(rate), biases[head]!, 0, 0]);
  return Float32Array.from([...taps, ...norm, ...rates]);
}

/**
 * How gdn.wgsl cuts a head's state over threads, and how many rows it prepares at a time. Only the number
 * of parts is in the order of the sums.
 * @throws InputError where a head is too large for a workgroup
 */
function gdnLayout(shape: ModelShape, bytesMax: number): Defines {
  const keyQuads = shape.linearKeyDim / 4;
  const valueQuads = shape.linearValueDim / 4;
  for (let parts = powerOfTwoDivisor(keyQuads, 8); parts >= 1; parts /= 2) {
    const threads = parts * valueQuads;
    for (let block = 8; block >= 1; block /= 2) {
      const blockQuads = block * (2 * keyQuads + valueQuads);
      const raw = (shape.convTaps - 1 + block) * (2 * keyQuads + valueQuads);
      const sums = Math.max(4 * threads, raw);
      const squares = block * Math.max(2 * keyQuads, valueQuads);
      const bytes = 16 * (blockQuads + sums) + 4 * squares + 16 * block;
      if (threads > threadsMax || bytes > bytesMax) continue;
      return {
        KEY_QUADS: keyQuads,
        VALUE_QUADS: valueQuads,
        PARTS: parts,
        PER_PART: shape.linearKeyDim / parts,
        QUADS: keyQuads / parts,
        THREADS: threads,
        BLOCK: block,
        BLOCK_QUADS: blockQuads,
        BLOCK_SQUARES: squares,
        SUMS: sums,
        WINDOW_ROWS: windowRowsMax,
      };
    }
  }
  const { linearKeyDim, linearValueDim } = shape;
  throw new InputError(
    `The webgpu backend has no room for GDN heads of ${linearKeyDim} × ${linearValueDim}. ` +
      "Use --backend wasm.",
  );
}
