import { drafterSizes, featureRowsOf } from "../../model/drafter-shape.ts";
import { bufferWidths, isDrawBuffer, type RowBuffer } from "../../model/forward.ts";
import { derivedSizes } from "../../model/shape.ts";
import type { BackendOptions, MemoryUse } from "../backend.ts";
import { type Arena, roundUp } from "./arena.ts";
import {
  PAGE_ROWS,
  PASS_KINDS_BYTES,
  ROW_TILE,
  SCRATCH_PREPARED,
  SEGMENT_BYTES,
  WINDOW_ROWS,
} from "./layout.ts";

/** Rows of floats, each on a stride of whole cache lines. */
export interface RowArray {
  readonly at: number;
  readonly strideBytes: number;
}

/** Keys and values in pages. */
export interface KvPlaces {
  /** One a layer: [page, kv head, 64, head dim]. */
  readonly keys: readonly number[];
  readonly values: readonly number[];
  readonly heads: number;
  readonly headDim: number;
  readonly pageBytes: number;
}

/** Rows of features by slot, and in it by place mod `rows`. */
export interface FeaturePlaces extends RowArray {
  readonly rows: number;
}

/** Where everything but the weights lies. */
export interface Places {
  readonly buffers: ReadonlyMap<RowBuffer, RowArray>;
  /** Floats of each row buffer. */
  readonly widths: ReadonlyMap<RowBuffer, number>;
  readonly taps: readonly RowArray[];
  /** One a linear layer: [slot, value head, key dim, value dim]. */
  readonly states: readonly number[];
  /** One a linear layer: [slot, taps − 1, channels]. */
  readonly histories: readonly number[];
  readonly kv: KvPlaces;
  readonly draft: { readonly kv: KvPlaces; readonly features: FeaturePlaces } | null;
  /** One a linear layer: [slot, row] of a window's raw qkv, keys, δ and decays, for its keep. */
  readonly logs: readonly number[];
  readonly logRowBytes: number;
  readonly pass: PassPlaces;
  /** One a thread. */
  readonly scratches: readonly number[];
  readonly memory: Pick<MemoryUse, "stateBytes" | "kvBytes">;
}

/** What a pass may hold: windows to commit, rows of a drafter's context, blocks to draft, the target's rows. */
export type PassKind = "keep" | "context" | "block" | "target";

/** The pass blocks, and what those of each kind point to. */
export interface PassPlaces {
  readonly blocks: number;
  readonly arrays: Readonly<Record<PassKind, PassArrays>>;
}

/** The arrays that a pass block points to. */
export interface PassArrays {
  readonly ids: number;
  readonly positions: number;
  readonly rowSegments: number;
  readonly drawRows: number;
  readonly segments: number;
  readonly rope: number;
  readonly pageTables: number;
  readonly paths: number;
}

export function placeAll(arena: Arena, options: BackendOptions, threads: number): Places {
  const { slots, pages, rowsMax, drawsMax, taps } = options;
  const { shape } = options.weights;
  const drafter = options.drafter?.weights.shape ?? null;
  const sizes = derivedSizes(shape);
  const widths = bufferWidths(shape, drafter);
  const measured = <T>(place: () => T): [T, number] => {
    const before = arena.bytes;
    const result = place();
    return [result, arena.bytes - before];
  };
  const many = (count: number, bytes: number): number[] =>
    Array.from({ length: count }, () => arena.place(bytes));

  const [state, stateBytes] = measured(() => ({
    states: many(sizes.linearLayers, 4 * slots * sizes.stateFloats),
    histories: many(sizes.linearLayers, 4 * slots * sizes.historyFloats),
    features: drafter && placeFeatures(arena, slots, rowsMax, drafterSizes(drafter).featureDim),
  }));
  const [kv, kvBytes] = measured(() => ({
    target: placeKv(arena, sizes.fullLayers, shape.kvHeadCount, shape.headDim, pages),
    draft:
      drafter && placeKv(arena, drafter.layers.length, drafter.kvHeadCount, drafter.headDim, pages),
  }));
  const logFloats = sizes.convDim + sizes.keyDim + sizes.valueDim + shape.linearValueHeads;
  const logRowBytes = roundUp(4 * logFloats, 64);
  const { features, ...slotState } = state;
  return {
    ...slotState,
    logs: many(sizes.linearLayers, slots * WINDOW_ROWS * logRowBytes),
    buffers: placeBuffers(arena, widths, rowsMax, drawsMax),
    taps: taps.map(() => placeRows(arena, rowsMax, shape.hiddenSize)),
    pass: placePass(arena, options),
    scratches: many(threads, scratchBytes(widths)),
    widths,
    kv: kv.target,
    draft: features && kv.draft && { kv: kv.draft, features },
    logRowBytes,
    memory: { stateBytes, kvBytes },
  };
}

function placeRows(arena: Arena, rows: number, width: number): RowArray {
  const strideBytes = roundUp(4 * width, 64);
  return { at: arena.place(rows * strideBytes), strideBytes };
}

function placeFeatures(
  arena: Arena,
  slots: number,
  rowsMax: number,
  featureDim: number,
): FeaturePlaces {
  const rows = featureRowsOf(rowsMax);
  return { ...placeRows(arena, slots * rows, featureDim), rows };
}

function placeKv(
  arena: Arena,
  layers: number,
  heads: number,
  headDim: number,
  pages: number,
): KvPlaces {
  const pageBytes = 4 * heads * PAGE_ROWS * headDim;
  const placeLayers = () => Array.from({ length: layers }, () => arena.place(pages * pageBytes));
  return { keys: placeLayers(), values: placeLayers(), heads, headDim, pageBytes };
}

function placeBuffers(
  arena: Arena,
  widths: ReadonlyMap<RowBuffer, number>,
  rowsMax: number,
  drawsMax: number,
): ReadonlyMap<RowBuffer, RowArray> {
  const buffers = new Map<RowBuffer, RowArray>();
  for (const [name, width] of widths) {
    buffers.set(name, placeRows(arena, isDrawBuffer(name) ? drawsMax : rowsMax, width));
  }
  return buffers;
}

function placePass(arena: Arena, options: BackendOptions): PassPlaces {
  const none = { ...options, rowsMax: 0, drawsMax: 0 };
  const drafted = options.drafter ? options : none;
  return {
    blocks: arena.place(PASS_KINDS_BYTES),
    arrays: {
      keep: placeArrays(arena, none),
      context: placeArrays(arena, { ...drafted, drawsMax: 0 }),
      block: placeArrays(arena, drafted),
      target: placeArrays(arena, options),
    },
  };
}

function placeArrays(arena: Arena, options: BackendOptions): PassArrays {
  const { rowsMax, drawsMax, slots, pages, drafter } = options;
  const ropeDims = Math.max(options.weights.shape.rotaryDim, drafter?.weights.shape.headDim ?? 0);
  return {
    ids: arena.place(4 * rowsMax),
    positions: arena.place(4 * rowsMax),
    rowSegments: arena.place(4 * rowsMax),
    drawRows: arena.place(4 * drawsMax),
    segments: arena.place(SEGMENT_BYTES * slots),
    rope: arena.place(4 * rowsMax * ropeDims),
    pageTables: arena.place(4 * slots * pages),
    paths: arena.place(4 * slots * WINDOW_ROWS * WINDOW_ROWS),
  };
}

/**
 * Row-tile accumulators, then 32 prepared rows of the widest input with sums and scales. The scan of a
 * window has its columns of the state there, which are fewer: qkv has a head's keys twice.
 */
export function scratchBytes(widths: ReadonlyMap<RowBuffer, number>): number {
  const widest = Math.max(...[...widths].map(([name, width]) => (name === "logits" ? 0 : width)));
  const sums = Math.max(widest, ROW_TILE);
  return SCRATCH_PREPARED + 4 * (sums + widest + ROW_TILE * widest);
}
