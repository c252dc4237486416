import { windowRowsMax } from "../../limits.ts";
import { derivedSizes } from "../../model/shape.ts";
import type { BackendOptions, MemoryUse } from "../backend.ts";
import { partialRowsMax } from "./attention-cut.ts";
import type { BufferSource } from "./device-memory.ts";
import { KvPages, type KvType } from "./kv-pages.ts";
import { keepWords, passWords } from "./pass.ts";
import type { Arithmetic } from "./projection-layout.ts";
import { placeRows, type RowArrays } from "./row-arrays.ts";
import { topkWords } from "./topk.ts";

/** What places depend on. */
export interface PlaceOptions extends BackendOptions {
  readonly arithmetic: Arithmetic;
  /** How keys and values are stored; f32 unless said. */
  readonly kv?: KvType;
}

/** Everything on the device but weights and instructions. */
export interface Places {
  readonly arrays: RowArrays;
  readonly taps: readonly GPUBuffer[];
  /** One a linear layer: [slot, value head, key dim, value dim]. */
  readonly states: readonly GPUBuffer[];
  /** One a linear layer: [slot, turn, taps − 1, channels]. */
  readonly histories: readonly GPUBuffer[];
  /** One a linear layer: what `keep` needs of a slot's window (gdn_common.wgsl). */
  readonly windowLogs: readonly GPUBuffer[];
  readonly keys: readonly GPUBuffer[];
  readonly values: readonly GPUBuffer[];
  readonly kv: KvPages;
  /** Attention before its merge (`kernels/attend.wgsl`): room for `partialRows` rows of all heads. */
  readonly partialOuts: GPUBuffer;
  readonly partialStats: GPUBuffer;
  readonly partialRows: number;
  readonly pass: GPUBuffer;
  /** A pass that commits windows, as `pass` is laid out. */
  readonly keeps: GPUBuffer;
  /** Candidates of the slices of a row, and of the rows (`kernels/topk.wgsl`). */
  readonly pairs: GPUBuffer;
  readonly results: GPUBuffer;
  /** A slot's latest kept logits row. */
  readonly keptLogits: GPUBuffer;
  readonly memory: Omit<MemoryUse, "weightBytes">;
}

export async function placeAll(memory: BufferSource, options: PlaceOptions): Promise<Places> {
  const { slots, pages, rowsMax, drawsMax, taps } = options;
  const { shape } = options.weights;
  const sizes = derivedSizes(shape);
  const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
  const create = (label: string, floats: number) => memory.create(label, 4 * floats, usage);
  const many = async (label: string, count: number, floats: number) => {
    const buffers: GPUBuffer[] = [];
    for (let index = 0; index < count; index++) {
      buffers.push(await create(`${label} ${index}`, floats));
    }
    return buffers;
  };
  const start = memory.bytes;
  const { linearLayers, stateFloats, historyFloats } = sizes;
  const copies = options.gdnPath === "copy" ? 2 : 1;
  const states = await many("state", linearLayers, copies * slots * stateFloats);
  const histories = await many("history", linearLayers, 2 * slots * historyFloats);
  const stateBytes = memory.bytes - start;
  const kv = new KvPages(shape, options.kv ?? "f32");
  const layerFloats = (pages * kv.pageBytes) / 4;
  const keys = await many("keys", sizes.fullLayers, layerFloats);
  const values = await many("values", sizes.fullLayers, layerFloats);
  const kvBytes = memory.bytes - start - stateBytes;
  // Decays take a vector of four each.
  const logFloats = 4 * shape.linearValueHeads + sizes.valueDim + sizes.keyDim + sizes.convDim;
  const bytes = (label: string, size: number) => memory.create(label, size, usage);
  const partialRows = partialRowsMax(options);
  const partials = partialRows * shape.headCount;
  const top = topkWords(shape.vocabSize, drawsMax);
  const places = {
    arrays: await placeRows(bytes, options, options.arithmetic),
    taps: await many("tap", taps.length, rowsMax * shape.hiddenSize),
    states,
    histories,
    windowLogs: await many("window log", linearLayers, slots * windowRowsMax * logFloats),
    keys,
    values,
    kv,
    partialOuts: await create("partial outs", partials * shape.headDim),
    partialStats: await create("partial stats", partials * 2),
    partialRows,
    pass: await create("pass", passWords(options)),
    keeps: await create("keeps", keepWords(options)),
    pairs: await create("top-k pairs", top.pairs),
    results: await create("results", top.results),
    keptLogits: await create("kept logits", slots * shape.vocabSize),
  };
  const workspaceBytes = memory.bytes - start - stateBytes - kvBytes;
  return { ...places, memory: { stateBytes, kvBytes, workspaceBytes } };
}
