// PROJECT: y[row, n] (+)= Σ_k W[n, k] · x[row, k], for one input and the matrices that read it.
//
// Contract: y[row, n] has one reduction order, fixed by W's shape alone. Affine: per group one
// four-lane chain over k ascending, then one multiply-add by the group's scale, groups ascending; the
// bias products form a chain of their own; lanes are added last, as math.ts horizontalSums does.
// Dense: one four-lane chain over k. int8 activations: int8.ts. Accumulators are f32. How many rows
// the pass has, the row's tile, its neighbours and the thread change nothing.
import {
  ACTIVATIONS_INT8,
  KIND_AFFINE4,
  KIND_AFFINE8,
  KIND_BF16,
  MATRIX_COLS,
  MATRIX_DATA,
  MATRIX_GROUP,
  MATRIX_KIND,
  MATRIX_ROWS,
  MATRIX_SCALES,
  PROJECTION_BYTES,
  ROW_TILE,
  SCRATCH_PREPARED,
} from "../layout";
import { affine4Row, affine8Row, affineTile } from "./affine";
import { denseTile } from "./dense";
import { int8Row, prepareInt8 } from "./int8";
import { prepareAffine } from "./prepare";
import { nextUnit, share } from "./sync";

/** Units a thread should find in a step, so that a delayed thread holds up little work. */
const UNITS_PER_THREAD: i32 = 6;

@inline
function blocksOf(matrix: usize): i32 {
  return (load<i32>(matrix, MATRIX_ROWS) + 3) >> 2;
}

/**
 * Operands from word 2: input, input stride (bytes), number of matrices, activations, pointer to
 * {matrix record, output, output stride, accumulate} records. Threads claim (row tile, matrix, run of
 * blocks) units.
 */
export function project(op: usize, rows: i32, scratch: usize, threads: i32): void {
  const input = load<u32>(op, 8) as usize;
  const inputStride = load<u32>(op, 12) as usize;
  const count = load<i32>(op, 16);
  const int8 = load<i32>(op, 20) == ACTIVATIONS_INT8;
  const list = load<u32>(op, 24) as usize;
  const tiles = (rows + ROW_TILE - 1) / ROW_TILE;
  let blocks: i32 = 0;
  for (let m: i32 = 0; m < count; m++) {
    blocks += blocksOf(load<u32>(list + (m as usize) * PROJECTION_BYTES) as usize);
  }
  const run = max(1, (blocks * tiles) / (threads * UNITS_PER_THREAD));
  const unitsPerTile = (blocks + run - 1) / run;
  const units = unitsPerTile * tiles;
  let prepared: i64 = -1;
  share(units);
  for (let unit = nextUnit(); unit >= 0; unit = nextUnit()) {
    const tile = unit / unitsPerTile;
    const firstRow = tile * ROW_TILE;
    const tileRows = min(ROW_TILE, rows - firstRow);
    let begin = (unit % unitsPerTile) * run;
    let left = min(run, blocks - begin);
    for (let m: i32 = 0; m < count && left > 0; m++) {
      const record = list + (m as usize) * PROJECTION_BYTES;
      const matrix = load<u32>(record) as usize;
      const here = blocksOf(matrix);
      if (begin >= here) {
        begin -= here;
        continue;
      }
      const kind = load<i32>(matrix, MATRIX_KIND);
      const affine = kind == KIND_AFFINE4 || kind == KIND_AFFINE8;
      const key = ((tile as i64) << 32) | ((kind << 16) | load<i32>(matrix, MATRIX_GROUP));
      const x = input + (firstRow as usize) * inputStride;
      if (affine && key != prepared) {
        prepare(matrix, kind, int8, x, inputStride, tileRows, scratch);
        prepared = key;
      }
      const n = min(left, here - begin);
      multiply(record, matrix, kind, int8, begin, n, firstRow, tileRows, x, inputStride, scratch);
      left -= n;
      begin = 0;
    }
  }
}

/** Lays out the tile's activations for the matrix: sums, then scales (int8), then values. */
function prepare(
  matrix: usize,
  kind: i32,
  int8: bool,
  x: usize,
  xStride: usize,
  rows: i32,
  scratch: usize,
): void {
  const cols = load<i32>(matrix, MATRIX_COLS);
  const group = load<i32>(matrix, MATRIX_GROUP);
  const period = kind == KIND_AFFINE4 ? 8 : 4;
  const groupsBytes = ((cols / group) as usize) << 2;
  const sums = scratch + SCRATCH_PREPARED;
  const scales = sums + ((cols as usize) << 2);
  const values = scales + ((cols as usize) << 2);
  for (let r: usize = 0; r < (rows as usize); r++) {
    const row = x + r * xStride;
    const rowSums = sums + r * groupsBytes;
    if (int8) {
      const at = values + r * (cols as usize);
      prepareInt8(row, cols, group, period, scales + r * groupsBytes, rowSums, at);
    } else {
      const at = values + ((r * (cols as usize)) << 2);
      prepareAffine(row, cols, group, period, 32 / period, rowSums, at);
    }
  }
}

/** Blocks [begin, begin + n) of one matrix for the tile's rows. */
function multiply(
  record: usize,
  matrix: usize,
  kind: i32,
  int8: bool,
  begin: i32,
  n: i32,
  firstRow: i32,
  rows: i32,
  x: usize,
  xStride: usize,
  scratch: usize,
): void {
  const cols = load<i32>(matrix, MATRIX_COLS);
  const group = load<i32>(matrix, MATRIX_GROUP);
  const outStride = load<u32>(record, 8) as usize;
  const accumulate = load<i32>(record, 12) != 0;
  const data = load<u32>(matrix, MATRIX_DATA) as usize;
  const allScales = load<u32>(matrix, MATRIX_SCALES) as usize;
  const sums = scratch + SCRATCH_PREPARED;
  const xScales = sums + ((cols as usize) << 2);
  const values = xScales + ((cols as usize) << 2);
  const affine = kind == KIND_AFFINE4 || kind == KIND_AFFINE8;
  const groups = affine ? cols / group : 0;
  const period = kind == KIND_AFFINE4 ? 8 : 4;
  // Bytes of a block: four rows of half bytes, bytes, bf16 or f32.
  const shift = kind == KIND_AFFINE4 ? 1 : kind == KIND_AFFINE8 ? 2 : kind == KIND_BF16 ? 3 : 4;
  const blockBytes = (cols as usize) << shift;
  for (let b = begin; b < begin + n; b++) {
    const codes = data + (b as usize) * blockBytes;
    const scales = allScales + (((b * groups) as usize) << 5);
    const base = load<u32>(record, 4) as usize;
    const out = base + (firstRow as usize) * outStride + ((b as usize) << 4);
    if (!affine) {
      denseTile(codes, kind, cols, rows, x, xStride, scratch, out, outStride, accumulate);
    } else if (int8) {
      for (let r: usize = 0; r < (rows as usize); r++) {
        const at = r * ((groups as usize) << 2);
        const row = values + r * (cols as usize);
        const y = int8Row(codes, scales, groups, group, period, row, xScales + at, sums + at);
        put(out + r * outStride, y, accumulate);
      }
    } else if (rows == 1) {
      const y =
        kind == KIND_AFFINE4
          ? affine4Row(codes, scales, groups, group >> 5, values, sums)
          : affine8Row(codes, scales, groups, group >> 4, values, sums);
      put(out, y, accumulate);
    } else {
      const stride = (cols as usize) << 2;
      affineTile(
        codes, scales, groups, group, period, rows, values, stride, sums, scratch, out, outStride, accumulate,
      );
    }
  }
}

@inline
function put(out: usize, y: v128, accumulate: bool): void {
  v128.store(out, accumulate ? f32x4.add(v128.load(out), y) : y);
}
