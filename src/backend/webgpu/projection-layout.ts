import type { DrafterShape } from "../../model/drafter-shape.ts";
import { bufferWidths, type RowBuffer } from "../../model/forward.ts";
import type { ModelShape } from "../../model/shape.ts";
import { blocksOf, type TileForm, tileRows } from "./tiles.ts";

/** How projections multiply: f32 throughout, or f16 inputs and weights with f32 sums. */
export type Arithmetic = "f32" | "f16";

/** Projections of one input write side by side into one buffer. */
const outputGroups: readonly (readonly RowBuffer[])[] = [
  ["qkv", "z", "b", "a"],
  ["queryGate", "key", "value"],
  ["gate", "up"],
  ["logits"],
  ["fused"],
  ["contextKeys", "contextValues"],
  ["draftKernel"],
  ["draftQuery", "draftKey", "draftValue"],
  ["draftOut"],
  ["draftGate", "draftUp"],
  ["selector"],
];

/**
 * Outputs of neighbours begin at whole tiles: whichever of them are one matrix, it ends before the next
 * begins. Bindings may begin there too.
 */
const alignment = tileRows;

/** Where a projection's output lies in its group's buffer. */
export interface OutputPlace {
  /** The first of its group. */
  readonly group: RowBuffer;
  /** First float of each row. */
  readonly offset: number;
  /** Floats from row to row. */
  readonly stride: number;
}

export function outputPlaces(
  shape: ModelShape,
  drafter: DrafterShape | null,
): ReadonlyMap<RowBuffer, OutputPlace> {
  const widths = bufferWidths(shape, drafter);
  const places = new Map<RowBuffer, OutputPlace>();
  for (const group of outputGroups) {
    let end = 0;
    const there = group.filter((name) => widths.has(name));
    const offsets = there.map((name) => {
      const offset = end;
      const layers = name.startsWith("context") ? drafter!.layers.length : 1;
      end += layers * roundUp(widths.get(name)! / layers, alignment);
      return offset;
    });
    there.forEach((name, index) => {
      places.set(name, { group: group[0]!, offset: offsets[index]!, stride: end });
    });
  }
  return places;
}

/**
 * Where a projection of `rows` outputs begins that stands `outAt` floats into its buffer, among others of
 * as many: they begin at whole tiles too.
 */
export const partAt = (outAt: number, rows: number): number =>
  (outAt / rows) * roundUp(rows, alignment);

export const roundUp = (value: number, step: number): number => Math.ceil(value / step) * step;

/** Units of work (16 outputs of a slice) that keep a large GPU busy, measured on an H200 (docs/bench-log.md). */
const unitsWanted = 2048;

/**
 * In how many slices a projection's input columns are summed (kernels/project_tiles.wgsl): enough that
 * few outputs still keep a large GPU busy, and a fixed number for the matrix's shape.
 */
export function slicesOf(columns: number, cols: number): number {
  const units = columns / 16;
  const blocks = blocksOf(cols);
  // Above that, units that come in several rounds let the last round be short.
  const wanted = units > unitsWanted ? 4 : 2 ** Math.ceil(Math.log2(unitsWanted / units));
  const slices = Math.min(16, wanted, Math.max(1, Math.floor(blocks / 8)));
  // No slice may be empty.
  return Math.ceil(blocks / Math.ceil(blocks / slices));
}

/** One way to cut a projection into workgroups; which one is taken changes no bit. */
export interface TileVariant {
  readonly kernel: "project_few" | "project_tiles";
  /** Rows that a workgroup makes. */
  readonly rows: number;
  /** Outputs that it makes of each. */
  readonly columns: number;
  readonly defines: Readonly<Record<string, number>>;
  /** Workgroup memory. */
  readonly bytes: number;
}

/** What the kernel and the device say of a projection. */
export interface TileSetting {
  readonly kind: TileForm["kind"];
  readonly outputs: number;
  /** Blocks of input columns, and how many of them a slice has. */
  readonly blocks: number;
  readonly perSlice: number;
  /** Blocks that codes are loaded ahead, at most. */
  readonly ahead: number;
  readonly workgroupBytesMax: number;
}

/** Rows that project_few.wgsl has a variant for. */
const fewRows = [1, 8, 16] as const;

/** Few outputs make more workgroups of one tile of them. */
function fewVariant(setting: TileSetting, rows: (typeof fewRows)[number]): TileVariant {
  const { kind, outputs, blocks, perSlice, ahead } = setting;
  const one = Number(rows === 1);
  const [MT, NT] = [outputs <= 8192 ? 1 : 2, Math.ceil(rows / 8)];
  // A thread's codes that are on their way: at most 64 bytes of a tile.
  const CH = Math.min(16 / kind, ahead, 2 * MT);
  return {
    kernel: "project_few",
    rows,
    columns: 16 * MT,
    defines: { ONE: one, MT, NT, CH, X_CHUNK: 8 * one, ...loop(blocks, perSlice, CH) },
    bytes: 16 * (MT * 80 + (one ? CH * 8 + 24 : NT * 72)),
  };
}

/** How project_few.wgsl goes over a slice, `chunk` blocks at a time. */
function loop(blocks: number, perSlice: number, chunk: number): Record<string, number> {
  const even = blocks % perSlice === 0;
  return {
    EVEN: Number(even),
    WHOLE: even ? chunk : 1,
    COUNT0: chunk,
    COUNT1: even ? perSlice % chunk : 0,
  };
}

/** WM × WN warps of MT × NT tiles; codes are loaded PRE blocks ahead. */
function tileVariant(WM: number, WN: number, MT: number, NT: number, PRE: number): TileVariant {
  const warps = WM * WN;
  const pieces = (WN * NT * 2) / warps;
  return {
    kernel: "project_tiles",
    rows: 8 * WN * NT,
    columns: 16 * WM * MT,
    defines: { WM, WN, MT, NT, PRE, LATER: PRE - 1, OWN: (WM * MT) / warps, PIECES: pieces },
    bytes: 16 * (WM * MT * 144 + WN * NT * 72),
  };
}

/** By rows; measured on an H200 (docs/bench-log.md). */
const tileVariants: readonly TileVariant[] = [
  tileVariant(4, 1, 1, 4, 2),
  tileVariant(2, 2, 4, 4, 1),
  tileVariant(2, 4, 4, 4, 1),
];

/** The variants that the device has room for. */
export const variantsFor = (setting: TileSetting): readonly TileVariant[] =>
  [...fewRows.map((rows) => fewVariant(setting, rows)), ...tileVariants].filter(
    ({ bytes }) => bytes <= setting.workgroupBytesMax,
  );

/** The narrowest variant that takes the rows at once, or the widest. */
export const variantFor = (variants: readonly TileVariant[], rows: number): TileVariant =>
  variants.find((variant) => variant.rows >= rows) ?? variants.at(-1)!;

/** Rows of a buffer that the tiles of `rows` rows touch, with whichever variants. */
export const paddedRows = (rows: number): number =>
  roundUp(rows, rows <= 16 ? 8 : variantFor(tileVariants, rows).rows);
