import { windowRowsMax } from "../../limits.ts";
import { type DrafterShape, drafterSizes, featureRowsOf } from "../../model/drafter-shape.ts";
import { derivedSizes } from "../../model/shape.ts";
import type { BackendOptions, MemoryUse } from "../backend.ts";
import { partialRowsMax } from "./attention-cut.ts";
import type { BufferPart, BufferSource } from "./device-memory.ts";
import { draftPartialsMax } from "./draft-cut.ts";
import { KvPages, type KvType } from "./kv-pages.ts";
import { KvStore } from "./kv-store.ts";
import { keepWords, passWords } from "./pass.ts";
import { type Arithmetic, roundUp } from "./projection-layout.ts";
import { draftRowsMax, placeRows, type RowArrays } from "./row-arrays.ts";
import { topkWords } from "./topk.ts";

/** What places depend on. */
export interface PlaceOptions extends BackendOptions {
  readonly arithmetic: Arithmetic;
  /** How keys and values are stored; f32 unless said. */
  readonly kv?: KvType;
}

/** Bytes from one layer to the next are a multiple of this: a binding may begin there. */
const partAlignment = 256;

/** Everything on the device but weights and instructions. */
export interface Places {
  readonly arrays: RowArrays;
  readonly taps: readonly GPUBuffer[];
  /** Of each linear layer: [slot, value head, key dim, value dim]. */
  readonly states: readonly BufferPart[];
  /** Of each linear layer: [slot, turn, taps − 1, channels]. */
  readonly histories: readonly BufferPart[];
  /** Of each linear layer: what `keep` needs of a slot's window (gdn_common.wgsl). */
  readonly windowLogs: readonly BufferPart[];
  /** Linear layers that share a buffer, for each of these three: one dispatch commits their windows. */
  readonly layersABuffer: number;
  readonly kv: KvStore;
  /** Keys or values of a page, on their way to another. */
  readonly pageCopy: GPUBuffer;
  /**
   * Attention before its merge (`kernels/attend.wgsl`, `kernels/draft_attend.wgsl`): room for
   * `partialRows` rows of all heads.
   */
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
  readonly drafter: DrafterPlaces | null;
  readonly memory: Omit<MemoryUse, "weightBytes">;
}

/** What a drafter has for itself. */
export interface DrafterPlaces {
  /** [slot, place mod `featureRows`, feature]. */
  readonly features: GPUBuffer;
  readonly featureRows: number;
  /** Of all its layers, one after the other, in a buffer for keys and one for values. */
  readonly kv: KvStore;
  /** Passes that extend its context, and those that draft. */
  readonly extend: GPUBuffer;
  readonly draft: GPUBuffer;
}

export async function placeAll(memory: BufferSource, options: PlaceOptions): Promise<Places> {
  const { slots, pages, rowsMax, drawsMax, taps } = options;
  const { shape } = options.weights;
  const drafter = options.drafter?.weights.shape ?? null;
  const sizes = derivedSizes(shape);
  const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
  const bytes = (label: string, size: number) => memory.create(label, size, usage);
  const create = (label: string, floats: number) => bytes(label, 4 * floats);
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
  // Decays take a vector of four each.
  const logFloats = 4 * shape.linearValueHeads + sizes.valueDim + sizes.keyDim + sizes.convDim;
  const slotFloats = [copies * stateFloats, 2 * historyFloats, windowRowsMax * logFloats] as const;
  const widest = partBytes(slots * Math.max(...slotFloats));
  const layersABuffer = Math.max(1, Math.floor(memory.bufferBytesMax / widest));
  const together = (label: string, floats: number) =>
    placeTogether(bytes, label, linearLayers, layersABuffer, slots * floats);
  const states = await together("states", slotFloats[0]);
  const histories = await together("histories", slotFloats[1]);
  const featureRows = featureRowsOf(rowsMax);
  const features = drafter
    ? await create("features", slots * featureRows * drafterSizes(drafter).featureDim)
    : null;
  const stateBytes = memory.bytes - start;
  const kvPages = new KvPages(shape, options.kv ?? "f32");
  const size = pages * kvPages.pageBytes;
  const layers = async (label: string) =>
    (await many(label, sizes.fullLayers, size / 4)).map((buffer) => ({ buffer, offset: 0, size }));
  const kv = new KvStore(kvPages, await layers("keys"), await layers("values"));
  const draftKv = drafter && (await placeDraftKv(bytes, options, drafter));
  const kvBytes = memory.bytes - start - stateBytes;
  const partialRows = partialRowsMax(options);
  const partials = partialRows * shape.headCount;
  const draftPartials = drafter
    ? draftPartialsMax(drafter, draftRowsMax(options, drafter))
    : { outs: 0, stats: 0 };
  const top = topkWords(shape.vocabSize, drawsMax);
  const places = {
    arrays: await placeRows(bytes, options, options.arithmetic),
    taps: await many("tap", taps.length, rowsMax * shape.hiddenSize),
    states,
    histories,
    windowLogs: await together("window logs", slotFloats[2]),
    layersABuffer,
    kv,
    pageCopy: await bytes("page copy", Math.max(kvPages.pageBytes, draftKv?.pages.pageBytes ?? 0)),
    partialOuts: await create(
      "partial outs",
      Math.max(partials * shape.headDim, draftPartials.outs),
    ),
    partialStats: await create("partial stats", Math.max(partials * 2, draftPartials.stats)),
    partialRows,
    pass: await create("pass", passWords(options, shape.rotaryDim)),
    keeps: await create("keeps", keepWords(options)),
    pairs: await create("top-k pairs", top.pairs),
    results: await create("results", top.results),
    keptLogits: await create("kept logits", slots * shape.vocabSize),
    drafter: drafter && {
      features: features!,
      featureRows,
      kv: draftKv!,
      extend: await create("extend", passWords(options, drafter.headDim)),
      draft: await create("draft", passWords(options, drafter.headDim)),
    },
  };
  const workspaceBytes = memory.bytes - start - stateBytes - kvBytes;
  return { ...places, memory: { stateBytes, kvBytes, workspaceBytes } };
}

const partBytes = (floats: number): number => roundUp(4 * floats, partAlignment);

/** As many floats for each layer, in buffers of several. */
async function placeTogether(
  create: (label: string, bytes: number) => Promise<GPUBuffer>,
  label: string,
  layers: number,
  layersABuffer: number,
  floats: number,
): Promise<BufferPart[]> {
  const step = partBytes(floats);
  const parts: BufferPart[] = [];
  while (parts.length < layers) {
    const count = Math.min(layersABuffer, layers - parts.length);
    const buffer = await create(`${label} from ${parts.length}`, count * step);
    for (let layer = 0; layer < count; layer++) {
      parts.push({ buffer, offset: layer * step, size: 4 * floats });
    }
  }
  return parts;
}

/** One buffer of each kind for all layers, so that a kernel can write to all. */
async function placeDraftKv(
  create: (label: string, bytes: number) => Promise<GPUBuffer>,
  { pages, kv }: PlaceOptions,
  drafter: DrafterShape,
): Promise<KvStore> {
  const kvPages = new KvPages(drafter, kv ?? "f32");
  const size = pages * kvPages.pageBytes;
  const layers = async (label: string) => {
    const buffer = await create(label, drafter.layers.length * size);
    return drafter.layers.map((_, layer) => ({ buffer, offset: layer * size, size }));
  };
  return new KvStore(kvPages, await layers("draft keys"), await layers("draft values"));
}
