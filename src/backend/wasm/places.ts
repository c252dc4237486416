import { bufferWidths, type RowBuffer } from "../../model/forward.ts";
import { derivedSizes, type ModelShape } from "../../model/shape.ts";
import type { BackendOptions, MemoryUse } from "../backend.ts";
import { type Arena, roundUp } from "./arena.ts";
import { PAGE_ROWS, PASS_BYTES, SCRATCH_PREPARED, SEGMENT_BYTES, WINDOW_ROWS } from "./layout.ts";

/** Rows of floats, each on a stride of whole cache lines. */
export interface RowArray {
  readonly at: number;
  readonly strideBytes: number;
}

/** Where everything but the weights lies. */
export interface Places {
  readonly buffers: ReadonlyMap<RowBuffer, RowArray>;
  readonly taps: readonly RowArray[];
  /** One a linear layer: [slot, value head, key dim, value dim]. */
  readonly states: readonly number[];
  /** One a linear layer: [slot, taps − 1, channels]. */
  readonly histories: readonly number[];
  /** One a full layer: [page, kv head, 64, head dim]. */
  readonly keys: readonly number[];
  readonly values: readonly number[];
  readonly pageBytes: number;
  /** One a linear layer: [slot, row] of a window's raw qkv, keys, δ and decays, for its keep. */
  readonly logs: readonly number[];
  readonly logRowBytes: number;
  readonly pass: PassPlaces;
  /** One a thread. */
  readonly scratches: readonly number[];
  readonly memory: Omit<MemoryUse, "weightBytes">;
}

/** The pass block and the arrays that it points to. */
export interface PassPlaces {
  readonly block: number;
  readonly ids: number;
  readonly positions: number;
  readonly rowSegments: number;
  readonly drawRows: number;
  readonly segments: number;
  readonly rope: number;
  readonly pageTables: number;
}

export function placeAll(arena: Arena, options: BackendOptions, threads: number): Places {
  const { slots, pages, rowsMax, drawsMax, taps } = options;
  const { shape } = options.weights;
  const sizes = derivedSizes(shape);
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
  }));
  const pageBytes = 4 * shape.kvHeadCount * PAGE_ROWS * shape.headDim;
  const [kv, kvBytes] = measured(() => ({
    keys: many(sizes.fullLayers, pages * pageBytes),
    values: many(sizes.fullLayers, pages * pageBytes),
  }));
  const logFloats = sizes.convDim + sizes.keyDim + sizes.valueDim + shape.linearValueHeads;
  const logRowBytes = roundUp(4 * logFloats, 64);
  const [workspace, workspaceBytes] = measured(() => ({
    logs: many(sizes.linearLayers, slots * WINDOW_ROWS * logRowBytes),
    buffers: placeBuffers(arena, shape, rowsMax, drawsMax),
    taps: taps.map(() => placeRows(arena, rowsMax, shape.hiddenSize)),
    pass: placePass(arena, options),
    scratches: many(threads, scratchBytes(shape)),
  }));
  const memory = { stateBytes, kvBytes, workspaceBytes };
  return { ...state, ...kv, ...workspace, pageBytes, logRowBytes, memory };
}

function placeRows(arena: Arena, rows: number, width: number): RowArray {
  const strideBytes = roundUp(4 * width, 64);
  return { at: arena.place(rows * strideBytes), strideBytes };
}

function placeBuffers(
  arena: Arena,
  shape: ModelShape,
  rowsMax: number,
  drawsMax: number,
): ReadonlyMap<RowBuffer, RowArray> {
  const buffers = new Map<RowBuffer, RowArray>();
  for (const [name, width] of Object.entries(bufferWidths(shape)) as [RowBuffer, number][]) {
    const rows = name === "logits" || name === "normedDraw" ? drawsMax : rowsMax;
    buffers.set(name, placeRows(arena, rows, width));
  }
  return buffers;
}

function placePass(arena: Arena, options: BackendOptions): PassPlaces {
  const { rowsMax, drawsMax, slots, pages } = options;
  return {
    block: arena.place(PASS_BYTES),
    ids: arena.place(4 * rowsMax),
    positions: arena.place(4 * rowsMax),
    rowSegments: arena.place(4 * rowsMax),
    drawRows: arena.place(4 * drawsMax),
    segments: arena.place(SEGMENT_BYTES * slots),
    rope: arena.place(4 * rowsMax * options.weights.shape.rotaryDim),
    pageTables: arena.place(4 * slots * pages),
  };
}

/**
 * Row-tile accumulators, then 32 prepared rows of the widest input with sums and scales. The scan of a
 * window has its columns of the state there, which are fewer: qkv has a head's keys twice.
 */
function scratchBytes(shape: ModelShape): number {
  const widest = Math.max(...Object.values({ ...bufferWidths(shape), logits: 0 }));
  return SCRATCH_PREPARED + 4 * widest * (2 + 32);
}
