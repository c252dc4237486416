import { bufferWidths, type RowBuffer } from "../../model/forward.ts";
import type { ModelShape } from "../../model/shape.ts";
import { blocksOf, tileRows } from "./tiles.ts";

/** How projections multiply: f32 throughout, or f16 inputs and weights with f32 sums. */
export type Arithmetic = "f32" | "f16";

/** Projections of one input write side by side into one buffer. */
const outputGroups: readonly (readonly RowBuffer[])[] = [
  ["qkv", "z", "b", "a"],
  ["queryGate", "key", "value"],
  ["gate", "up"],
  ["logits"],
];

/**
 * Outputs of neighbours begin at whole tiles: whichever of them are one matrix, it ends before the next
 * begins. Bindings may begin there too.
 */
const alignment = tileRows;

/** Where a projection's output lies in its group's buffer. */
export interface OutputPlace {
  readonly group: number;
  /** First float of each row. */
  readonly offset: number;
  /** Floats from row to row. */
  readonly stride: number;
}

export function outputPlaces(shape: ModelShape): ReadonlyMap<RowBuffer, OutputPlace> {
  const widths = bufferWidths(shape);
  const places = new Map<RowBuffer, OutputPlace>();
  outputGroups.forEach((names, group) => {
    let width = 0;
    const offsets = names.map((name) => {
      const offset = width;
      width += roundUp(widths[name], alignment);
      return offset;
    });
    const stride = width;
    names.forEach((name, index) => {
      places.set(name, { group, offset: offsets[index]!, stride });
    });
  });
  return places;
}

export const roundUp = (value: number, step: number): number => Math.ceil(value / step) * step;

/**
 * In how many slices a projection's input columns are summed (kernels/project_tiles.wgsl): enough that
 * few outputs still keep a large GPU busy, and a fixed number for the matrix's shape.
 */
export function slicesOf(columns: number, cols: number): number {
  const tiles = columns / 16;
  const blocks = blocksOf(cols);
  const wanted = Math.min(16, Math.ceil(4096 / tiles), Math.max(1, Math.floor(blocks / 8)));
  // No slice may be empty.
  return Math.ceil(blocks / Math.ceil(blocks / wanted));
}

/** One way to cut a projection into workgroups; which one is taken changes no bit. */
export interface TileVariant {
  /** Rows that a workgroup makes. */
  readonly tokens: number;
  readonly WM: number;
  readonly WN: number;
  readonly MT: number;
  readonly NT: number;
  readonly PRE: number;
}

/** By rows; measured on an H200 (docs/bench-log.md). */
const tileVariants: readonly TileVariant[] = [
  { tokens: 8, WM: 2, WN: 1, MT: 1, NT: 1, PRE: 4 },
  { tokens: 16, WM: 2, WN: 1, MT: 1, NT: 2, PRE: 4 },
  { tokens: 32, WM: 4, WN: 1, MT: 1, NT: 4, PRE: 2 },
  { tokens: 64, WM: 2, WN: 2, MT: 4, NT: 4, PRE: 1 },
  { tokens: 128, WM: 2, WN: 4, MT: 4, NT: 4, PRE: 1 },
];

/** Bytes of workgroup memory that a variant takes. */
const variantBytes = ({ WM, WN, MT, NT }: TileVariant): number =>
  16 * (WM * MT * 144 + WN * NT * 72);

/** The variants that a device has room for. */
export const variantsFor = (workgroupBytesMax: number): readonly TileVariant[] =>
  tileVariants.filter((variant) => variantBytes(variant) <= workgroupBytesMax);

/** The narrowest variant that takes the rows at once, or the widest. */
export const variantFor = (variants: readonly TileVariant[], rows: number): TileVariant =>
  variants.find(({ tokens }) => tokens >= rows) ?? variants.at(-1)!;

/** Rows of a buffer that the tiles of `rows` rows touch, with whichever variants. */
export function paddedRows(rows: number): number {
  const { tokens } = variantFor(tileVariants, rows);
  return roundUp(rows, tokens);
}

/** Further defines of kernels/project_tiles.wgsl. */
export function variantDefines({ WM, WN, MT, NT, PRE }: TileVariant): Record<string, number> {
  const warps = WM * WN;
  return {
    WM,
    WN,
    MT,
    NT,
    PRE,
    LATER: PRE - 1,
    OWN: (WM * MT) / warps,
    PIECES: (WN * NT * 2) / warps,
  };
}
