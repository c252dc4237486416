/** The texts of the ladder's kernels: 4-bit codes in groups of 64, f16 products by the matrix unit. */
import { readdirSync, readFileSync } from "node:fs";
import { type Defines, preprocess } from "../../src/backend/webgpu/preprocess.ts";

/** A kernel and how it cuts a matrix into workgroups. */
export interface LadderKernel {
  /** Outputs that a workgroup makes. */
  readonly columns: number;
  /** Slices of K that a workgroup makes and adds. */
  readonly together: number;
  /** Workgroups are counted over slices first. */
  readonly slicesFirst: boolean;
  /** Scales lie behind each block's codes, in the same buffer. */
  readonly interleaved: boolean;
  /** x is two digits of 8 bits, with scales in a sixth buffer. */
  readonly digits: boolean;
  /** WGSL for slices of so many blocks of 64 columns. */
  text(perSlice: number): string;
}

const sources: Readonly<Record<string, string>> = Object.fromEntries(
  readdirSync(import.meta.dirname)
    .filter((file) => file.endsWith(".wgsl"))
    .map((file) => [
      file.replace(/\.wgsl$/, ""),
      readFileSync(`${import.meta.dirname}/${file}`, "utf8"),
    ]),
);

/** Writes words without a pattern. */
export const fillText: string = sources["fill"]!;

const plain = { together: 1, slicesFirst: false, interleaved: false, digits: false } as const;

/** Where copies of the loop's body don't fill a slice evenly, all but the first stand in a condition. */
const conditional = (perSlice: number, copies: number): number => Number(perSlice % copies !== 0);

interface Staged {
  /** Warps of a workgroup, each with a tile of 16 outputs of one slice. */
  readonly warps: number;
  /** Slices of K that a workgroup makes and adds. */
  readonly together?: number;
  /** Blocks that codes are loaded ahead. */
  readonly ahead: number;
  /** One copy of the loop's body, and codes that move from register to register. */
  readonly rolled: boolean;
}

/** W and x go through workgroup memory a block at a time. */
export function staged({ warps, together = 1, ahead, rolled }: Staged): LadderKernel {
  const tiles = warps / together;
  const copies = rolled ? 1 : ahead;
  const defines: Defines = {
    WARPS: warps,
    TILES: tiles,
    TOGETHER: together,
    TOGETHER_LESS_1: together - 1,
    AHEAD: ahead,
    AHEAD_LESS_1: ahead - 1,
    ROLLED: Number(rolled),
    COPIES: copies,
    ...pieces(tiles),
  };
  return {
    ...plain,
    columns: 16 * tiles,
    together,
    text: (perSlice) =>
      preprocess("staged", { ...defines, CONDITIONAL: conditional(perSlice, copies) }, sources),
  };
}

/** Half a block is made while the half before is multiplied: one barrier for each. */
export function halfPipeline(warps: number, ahead: number): LadderKernel {
  const defines: Defines = {
    WARPS: warps,
    HALF: warps * 80,
    AHEAD: ahead,
    AHEAD_LESS_1: ahead - 1,
    ...pieces(warps),
  };
  return {
    ...plain,
    columns: 16 * warps,
    text: () => preprocess("half_pipeline", defines, sources),
  };
}

/** The vec4 of x of which each thread of so many warps brings some: 64 a block. */
function pieces(warps: number): Defines {
  if (warps > 2) throw new RangeError(`${warps} warps have more threads than x has vectors`);
  return { PIECES: 2 / warps };
}

interface OneWarp {
  /** Tiles of 16 outputs of each warp. */
  readonly tiles: number;
  /** Blocks that codes are loaded ahead, and of x that come at a time: at most 4. */
  readonly ahead: number;
  readonly warps?: number;
  /** Parts in which a block goes through workgroup memory: 1, 2 or 4. */
  readonly parts?: number;
  readonly xFromStorage?: boolean;
  readonly interleaved?: boolean;
  readonly slicesFirst?: boolean;
  /** Without them the kernel may compute anything; that it may be timed is all. */
  readonly barriers?: boolean;
}

/** One row of x by warps that share nothing but the workgroup. */
export function oneWarp({
  tiles,
  ahead,
  warps = 1,
  parts = 2,
  xFromStorage = false,
  interleaved = false,
  slicesFirst = false,
  barriers = true,
}: OneWarp): LadderKernel {
  // Rows of W in vec4, one of them padding against bank conflicts.
  const line = 8 / parts + 1;
  const defines: Defines = {
    WARPS: warps,
    TILES: tiles,
    AHEAD: ahead,
    PARTS: parts,
    LAST_PART: parts - 1,
    WORDS: 4 / parts,
    X_PART: 8 / parts,
    LINE: line,
    W_TILE: 16 * line,
    W_WARP: 16 * line * tiles,
    // The 8 rows of x overlap: they begin 3 vec4 apart, and only the first is ever written.
    X_LENGTH: ahead * 8 + 7 * 3 + 2,
    X_FROM_STORAGE: Number(xFromStorage),
    SLICES_FIRST: Number(slicesFirst),
    BARRIERS: Number(barriers),
    // Of a block of 16 rows: 32 vec4 of codes, 16 words of scales.
    CODES_APART: interleaved ? 36 : 32,
    SCALES_APART: interleaved ? 144 : 16,
    SCALES_FROM: interleaved ? 128 : 0,
  };
  return {
    ...plain,
    columns: 16 * tiles * warps,
    slicesFirst,
    interleaved,
    text: (perSlice) =>
      preprocess("one_warp", { ...defines, CONDITIONAL: conditional(perSlice, ahead) }, sources),
  };
}

/** Integers throughout a group. The result is not right yet. */
export function digits(tiles: number, ahead: number): LadderKernel {
  const defines: Defines = { TILES: tiles, AHEAD: ahead, X_LENGTH: ahead * 10 + 32 };
  return {
    ...plain,
    columns: 16 * tiles,
    digits: true,
    text: (perSlice) =>
      preprocess("digits", { ...defines, CONDITIONAL: conditional(perSlice, ahead) }, sources),
  };
}
