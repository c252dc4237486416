import { pageRows } from "../../limits.ts";
import { isTree, type Plan, type Segment } from "../../model/plan.ts";
import type { ModelShape } from "../../model/shape.ts";
import type { BackendOptions } from "../backend.ts";
import type { Defines } from "./preprocess.ts";
import { powerOfTwoDivisor } from "./support.ts";

/** Tiles of 64 keys a chunk: part of the order of sums (`kernels/attend.wgsl`). */
const chunkTiles = 8;
/** Workgroups that keep a large GPU busy; more than these make longer spans worth their while. */
const busyWorkgroups = 256;
/** Bytes that partial results may take, unless two a row take more. */
const partialBytesMax = 67_108_864;
/** More than any context has. */
const wholeSpan = 1_048_576;

/** Neighbouring rows of one segment that share what is read of its keys and values. */
export interface RowBlock {
  readonly firstRow: number;
  readonly rows: number;
}

/** How a pass's attention is cut into workgroups. Its bits don't depend on it. */
export interface AttentionCut {
  readonly blocks: readonly RowBlock[];
  /** Rows of a block at most: which variant of the kernel. */
  readonly blockRows: number;
  /** Tiles of keys that a workgroup walks: 1, a chunk's or all. */
  readonly span: number;
  /** Workgroups along the keys. */
  readonly units: number;
  /** Partial results of each (row, head). */
  readonly partials: number;
}

/** Parts of a head's dims that are summed side by side. */
const partsOf = (shape: ModelShape): number => powerOfTwoDivisor(shape.headDim / 4, 4);
const headsAKv = (shape: ModelShape): number => shape.headCount / shape.kvHeadCount;
/** Queries a workgroup: as many as 16 KiB of workgroup memory take. */
const queriesMax = 48;
const blockHeads = (shape: ModelShape): number => Math.min(headsAKv(shape), queriesMax);

/** Workgroups that share a KV head's query heads; 1 unless there are very many. */
export const headBlocks = (shape: ModelShape): number =>
  Math.ceil(headsAKv(shape) / blockHeads(shape));

/**
 * Rows a block, ascending: a variant of the kernel for each.
 * @param software whether the adapter is one: those compile the large variants slowly
 */
export function blockSizes(shape: ModelShape, software: boolean): number[] {
  const most = Math.min(software ? 4 : 16, Math.floor(queriesMax / blockHeads(shape)));
  return [...new Set([1, Math.min(4, most), most])];
}

/**
 * The numbers of `kernels/attend.wgsl` for blocks of `blockRows` rows.
 * @param tree whether for passes with trees, whose blocks have one row
 * @param software whether the adapter is one: many loads in flight are for GPUs
 */
export function attendDefines(
  shape: ModelShape,
  blockRows: number,
  tree: boolean,
  software: boolean,
): Defines {
  const vectors = shape.headDim / 4;
  const parts = partsOf(shape);
  const threads = pageRows * parts;
  const queries = blockRows * blockHeads(shape);
  const quads = Math.ceil(queries / 4);
  // Each thread takes three quads at most, and then as many keys as there are groups of threads.
  const groups = [1, 2, 4].find((count) => quads <= 3 * count)!;
  const quadsEach = Math.ceil(quads / groups);
  const allQuads = groups * quadsEach;
  const live = (quad: number) => (groups === 1 ? Math.min(4, Math.max(0, queries - 4 * quad)) : 4);
  const valueQuads = Math.ceil(allQuads / Math.floor(threads / vectors));
  return {
    CHUNK_TILES: chunkTiles,
    TREE: Number(tree),
    BLOCK_ROWS: blockRows,
    BLOCK_HEADS: blockHeads(shape),
    HEAD_BLOCKS: headBlocks(shape),
    VECS: vectors,
    PARTS: parts,
    STEPS: vectors / parts,
    THREADS: threads,
    QUADS: allQuads,
    STRIDE: allQuads % 2 === 0 ? allQuads + 1 : allQuads,
    Q_QUADS: quadsEach,
    LIVE0: live(0),
    LIVE1: live(1),
    LIVE2: live(2),
    K_EACH: groups,
    KEY_LANES: pageRows / groups,
    // Loads in flight hide the memory's latency; many queries leave fewer registers for them.
    K_AHEAD: software ? 1 : powerOfTwoDivisor(vectors / parts, groups === 1 ? 8 : 1),
    V_QUADS: valueQuads,
    V_AHEAD: software ? 1 : valueQuads === 1 ? 16 : 4,
  };
}

/** The numbers of `kernels/merge.wgsl`: chunks side by side where spans are short and so many. */
export function mergeDefines(shape: ModelShape, shortSpans: boolean): Defines {
  const vectors = shape.headDim / 4;
  const columns = Math.min(vectors, shortSpans ? 16 : 64);
  return { CHUNK_TILES: chunkTiles, VECS: vectors, COLUMNS: columns, LANES: shortSpans ? 16 : 4 };
}

/** Partial results that there is room for, in rows of all heads. */
export function partialRowsMax(options: BackendOptions): number {
  const { rowsMax, pages } = options;
  const { headCount, headDim } = options.weights.shape;
  const rowBytes = 4 * headCount * (headDim + 2);
  const useful = Math.max(rowsMax * Math.ceil(pages / chunkTiles), 16 * pages);
  return Math.max(2 * rowsMax, Math.min(useful, Math.floor(partialBytesMax / rowBytes)));
}

/**
 * Cuts a pass's attention. Spans are one tile where the pass is small, a chunk where that gives work
 * enough, and all keys where the partial results of chunks would not fit.
 * @param sizes of blocks that there are (`blockSizes`)
 * @param partialRows room for partial results (`partialRowsMax`)
 */
export function chooseCut(
  plan: Plan,
  shape: ModelShape,
  sizes: readonly number[],
  partialRows: number,
): AttentionCut {
  // Neighbours in a tree see different keys.
  const trees = plan.segments.some(isTree);
  const longest = trees ? 1 : Math.max(...plan.segments.map((segment) => segment.rows));
  const blockRows = sizes.find((size) => size >= longest) ?? sizes.at(-1)!;
  const rows = plan.ids.length;
  const tiles = cut(plan, blockRows, "tile");
  const chunks = cut(plan, blockRows, "chunk");
  const workgroups = chunks.blocks.length * shape.kvHeadCount * headBlocks(shape) * chunks.units;
  const small = blockRows === 1 || workgroups < busyWorkgroups;
  if (small && rows * tiles.partials <= partialRows) return tiles;
  if (rows * chunks.partials <= partialRows) return chunks;
  return cut(plan, blockRows, "all");
}

/** Blocks of `blockRows` rows, and workgroups that each walk this much of the keys. */
export function cut(plan: Plan, blockRows: number, span: "tile" | "chunk" | "all"): AttentionCut {
  const blocks = plan.segments.flatMap((segment) => blocksOf(segment, blockRows));
  if (span === "all") return { blocks, blockRows, span: wholeSpan, units: 1, partials: 2 };
  const tilesEach = span === "tile" ? 1 : chunkTiles;
  const ends = plan.segments.map((segment) => segment.start + segment.rows);
  const units = Math.ceil(Math.max(...ends) / (pageRows * tilesEach));
  return { blocks, blockRows, span: tilesEach, units, partials: units };
}

function blocksOf({ firstRow, rows }: Segment, blockRows: number): RowBlock[] {
  return Array.from({ length: Math.ceil(rows / blockRows) }, (_, index) => ({
    firstRow: firstRow + index * blockRows,
    rows: Math.min(blockRows, rows - index * blockRows),
  }));
}
