// PROJECT: y[row, n] (+)= Σ_k W[n, k] · x[row, k], for one input and the matrices that read it.
//
// Contract: y[row, n] has one reduction order, fixed by W's shape alone. Affine: per group one
// four-lane chain over k ascending, then one multiply-add by the group's scale, groups ascending; the
// bias products form a chain of their own; lanes are added last, as math.ts horizontalSums does.
// Dense: one four-lane chain over k. int8 activations: int8.ts. Accumulators are f32. How many rows
// the pass has, the row's tile and panel, its neighbours and the thread change nothing.
import {
  ACTIVATIONS_INT8,
  FAR_BLOCKS,
  KIND_AFFINE4,
  KIND_AFFINE8,
  KIND_BF16,
  KIND_F32,
  MATRIX_COLS,
  MATRIX_DATA,
  MATRIX_FAR,
  MATRIX_GROUP,
  MATRIX_KIND,
  MATRIX_MASK,
  MATRIX_NARROW,
  MATRIX_ROWS,
  MATRIX_SCALES,
  PROJECTION_BYTES,
  ROW_TILE,
  SCRATCH_PREPARED,
} from "../layout";
import { isWide, Narrow, Wide } from "./dots";
import { multiplyFar } from "./far";
import { int8Block, int8FourBlocks, int8Fours, prepareInt8, unpackTwoBlocks } from "./int8";
import { put } from "./math";
import { fourRows, oneRow, twoRows } from "./panels";
import { panelRows, prepareRow } from "./prepare";
import { nextUnit, share } from "./sync";
import { Bf16, blockBytes, Bytes, Floats, Nibbles, scalesBytes } from "./weights";

/** Units a thread should find in a step, so that a delayed thread holds up little work. */
const UNITS_PER_THREAD: i32 = 6;
/** Weights that a unit has at most, for the same. */
const UNIT_WEIGHTS: i32 = 1 << 20;

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
  const cols = load<i32>(load<u32>(list) as usize, MATRIX_COLS);
  const most = min((blocks * tiles) / (threads * UNITS_PER_THREAD), UNIT_WEIGHTS / (4 * cols));
  // int8 activations go with four blocks at a time, or two.
  const run = max(4, most & ~3);
  const unitsPerTile = (blocks + run - 1) / run;
  const units = unitsPerTile * tiles;
  let prepared: i64 = -1;
  // A bit for each memory that has what is prepared.
  let sent: u32 = 0;
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
      const key = ((tile as i64) << 32) | ((kind << 16) | load<i32>(matrix, MATRIX_GROUP));
      const x = input + (firstRow as usize) * inputStride;
      if (key != prepared) {
        prepare(matrix, kind, int8, x, inputStride, tileRows, scratch);
        prepared = key;
        sent = 0;
      }
      const n = min(left, here - begin);
      const outStride = load<u32>(record, 8) as usize;
      const out = (load<u32>(record, 4) as usize) + (firstRow as usize) * outStride;
      const accumulate = load<i32>(record, 12) != 0;
      const far = load<i32>(matrix, MATRIX_FAR);
      if (far) {
        const bytes = ((sent >> far) & 1) == 0 ? preparedBytes(matrix, kind, int8, tileRows) : 0;
        multiplyAway(far, matrix, int8, begin, n, tileRows, scratch, bytes, out, outStride, accumulate);
        sent |= 1 << far;
      } else {
        const to = out + ((begin as usize) << 4);
        multiply(matrix, int8, begin, n, tileRows, scratch, to, outStride, accumulate);
      }
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
  const group = groupOf(matrix);
  const groupsBytes = ((cols / group) as usize) << 2;
  const sums = sumsAt(scratch);
  const values = valuesAt(scratch, cols);
  if (int8 && isCodes(kind)) {
    const period = kind == KIND_AFFINE4 ? 8 : 4;
    for (let r: usize = 0; r < (rows as usize); r++) {
      const scales = scalesAt(scratch, cols) + r * groupsBytes;
      const out = values + r * (cols as usize);
      prepareInt8(x + r * xStride, cols, group, period, scales, sums + r * groupsBytes, out);
    }
    return;
  }
  for (let first: i32 = 0; first < rows; ) {
    const panel = panelRows(rows - first);
    const panelSums = sums + (first as usize) * groupsBytes;
    const panelValues = values + (((first * cols) as usize) << 2);
    for (let r: usize = 0; r < (panel as usize); r++) {
      const row = x + ((first as usize) + r) * xStride;
      prepareRow(row, cols, group, panel, panelSums + (r << 2), panelValues + (r << 4));
    }
    first += panel;
  }
}

/** The same as multiply, in the memory where the matrix is, a few blocks at a time. */
function multiplyAway(
  far: i32,
  matrix: usize,
  int8: bool,
  begin: i32,
  n: i32,
  rows: i32,
  scratch: usize,
  prepared: usize,
  out: usize,
  outStride: usize,
  accumulate: bool,
): void {
  for (const end = begin + n; begin < end; begin += FAR_BLOCKS) {
    const few = min(FAR_BLOCKS, end - begin);
    const to = out + ((begin as usize) << 4);
    multiplyFar(far, matrix, int8, begin, few, rows, scratch, prepared, to, outStride, accumulate);
    prepared = 0;
  }
}

/** Blocks [begin, begin + n) of one matrix for a tile's rows, whose outputs begin at `out`. */
export function multiply(
  matrix: usize,
  int8: bool,
  begin: i32,
  n: i32,
  rows: i32,
  scratch: usize,
  out: usize,
  outStride: usize,
  accumulate: bool,
): void {
  const kind = load<i32>(matrix, MATRIX_KIND);
  const narrow = load<i32>(matrix, MATRIX_NARROW) != 0;
  if (int8 && isCodes(kind)) {
    if (isWide()) {
      if (narrow)
        multiplyInt8<u16, Wide>(matrix, kind, begin, n, rows, scratch, out, outStride, accumulate);
      else multiplyInt8<f32, Wide>(matrix, kind, begin, n, rows, scratch, out, outStride, accumulate);
    } else if (narrow) {
      multiplyInt8<u16, Narrow>(matrix, kind, begin, n, rows, scratch, out, outStride, accumulate);
    } else {
      multiplyInt8<f32, Narrow>(matrix, kind, begin, n, rows, scratch, out, outStride, accumulate);
    }
  } else if (kind == KIND_BF16) {
    multiplyBlocks<Bf16, f32>(matrix, begin, n, rows, scratch, out, outStride, accumulate);
  } else if (kind == KIND_F32) {
    multiplyBlocks<Floats, f32>(matrix, begin, n, rows, scratch, out, outStride, accumulate);
  } else if (kind == KIND_AFFINE4) {
    if (narrow)
      multiplyBlocks<Nibbles, u16>(matrix, begin, n, rows, scratch, out, outStride, accumulate);
    else multiplyBlocks<Nibbles, f32>(matrix, begin, n, rows, scratch, out, outStride, accumulate);
  } else if (narrow) {
    multiplyBlocks<Bytes, u16>(matrix, begin, n, rows, scratch, out, outStride, accumulate);
  } else {
    multiplyBlocks<Bytes, f32>(matrix, begin, n, rows, scratch, out, outStride, accumulate);
  }
}

function multiplyBlocks<T, S>(
  matrix: usize,
  begin: i32,
  n: i32,
  rows: i32,
  scratch: usize,
  out: usize,
  outStride: usize,
  accumulate: bool,
): void {
  const cols = load<i32>(matrix, MATRIX_COLS);
  const group = groupOf(matrix);
  const groups = cols / group;
  const mask = load<i32>(matrix, MATRIX_MASK);
  const data = load<u32>(matrix, MATRIX_DATA) as usize;
  const allScales = load<u32>(matrix, MATRIX_SCALES) as usize;
  for (let b = begin; b < begin + n; b++) {
    const codes = data + (b as usize) * blockBytes<T>(cols);
    const scales = allScales + ((b * groups) as usize) * scalesBytes<S>();
    let x = valuesAt(scratch, cols);
    let sums = sumsAt(scratch);
    let y = out;
    for (let left = rows; left > 0; ) {
      const panel = panelRows(left);
      if (panel == 4) {
        fourRows<T, S>(codes, scales, groups, group, x, sums, mask, scratch, y, outStride, accumulate);
      } else if (panel == 2) {
        twoRows<T, S>(codes, scales, groups, group, x, sums, mask, y, outStride, accumulate);
      } else {
        oneRow<T, S>(codes, scales, groups, group, x, sums, mask, y, accumulate);
      }
      x += ((panel * cols) as usize) << 2;
      sums += ((panel * groups) as usize) << 2;
      y += (panel as usize) * outStride;
      left -= panel;
    }
    out += 16;
  }
}

function multiplyInt8<S, D>(
  matrix: usize,
  kind: i32,
  begin: i32,
  n: i32,
  rows: i32,
  scratch: usize,
  out: usize,
  outStride: usize,
  accumulate: bool,
): void {
  if (kind == KIND_AFFINE8)
    multiplyFew<Bytes, S, D>(matrix, begin, n, 0, rows, scratch, out, outStride, accumulate);
  else if (rows < 4)
    multiplyFew<Nibbles, S, D>(matrix, begin, n, 0, rows, scratch, out, outStride, accumulate);
  else multiplyMany<S, D>(matrix, begin, n, rows, scratch, out, outStride, accumulate);
}

/** Rows from `firstRow` on one by one, with blocks from the four quarters of the run at a time (int8FourBlocks). */
function multiplyFew<T, S, D>(
  matrix: usize,
  begin: i32,
  n: i32,
  firstRow: i32,
  rows: i32,
  scratch: usize,
  out: usize,
  outStride: usize,
  accumulate: bool,
): void {
  const cols = load<i32>(matrix, MATRIX_COLS);
  const group = groupOf(matrix);
  const groups = cols / group;
  const mask = load<i32>(matrix, MATRIX_MASK);
  const bytes = blockBytes<T>(cols);
  const groupsScales = (groups as usize) * scalesBytes<S>();
  const quarter = n >> 2;
  const apart = (quarter as usize) * bytes;
  const scalesApart = (quarter as usize) * groupsScales;
  const outApart = (quarter as usize) << 4;
  const left = n - 3 * quarter;
  for (let b: i32 = 0; b < left; b++) {
    const inQuarters = b < quarter;
    const at = b + (inQuarters ? 0 : 3 * quarter);
    const block = (begin + at) as usize;
    const codes = (load<u32>(matrix, MATRIX_DATA) as usize) + block * bytes;
    const scales = (load<u32>(matrix, MATRIX_SCALES) as usize) + block * groupsScales;
    let x = valuesAt(scratch, cols) + ((firstRow * cols) as usize);
    let xs = scalesAt(scratch, cols) + (((firstRow * groups) as usize) << 2);
    let sums = sumsAt(scratch) + (((firstRow * groups) as usize) << 2);
    let y = out + ((at as usize) << 4) + (firstRow as usize) * outStride;
    for (let row = firstRow; row < rows; row++) {
      if (inQuarters) {
        int8FourBlocks<T, S, D>(
          codes,
          apart,
          scales,
          scalesApart,
          groups,
          group,
          x,
          xs,
          sums,
          mask,
          y,
          outApart,
          accumulate,
        );
      } else {
        put(y, int8Block<T, S, D>(codes, scales, groups, group, x, xs, sums, mask), accumulate);
      }
      x += cols as usize;
      xs += (groups as usize) << 2;
      sums += (groups as usize) << 2;
      y += outStride;
    }
  }
}

/** Four rows at a time with blocks from the two halves of the run, which are unpacked once (int8Fours). */
function multiplyMany<S, D>(
  matrix: usize,
  begin: i32,
  n: i32,
  rows: i32,
  scratch: usize,
  out: usize,
  outStride: usize,
  accumulate: bool,
): void {
  const cols = load<i32>(matrix, MATRIX_COLS);
  const group = groupOf(matrix);
  const groups = cols / group;
  const mask = load<i32>(matrix, MATRIX_MASK);
  const bytes = blockBytes<Nibbles>(cols);
  const groupsScales = (groups as usize) * scalesBytes<S>();
  const half = n >> 1;
  const apart = (half as usize) * bytes;
  const scalesApart = (half as usize) * groupsScales;
  const outApart = (half as usize) << 4;
  const unpacked = unpackedAt(scratch, cols);
  const fours = rows & ~3;
  let codes = (load<u32>(matrix, MATRIX_DATA) as usize) + (begin as usize) * bytes;
  let scales = (load<u32>(matrix, MATRIX_SCALES) as usize) + (begin as usize) * groupsScales;
  let to = out;
  for (let b: i32 = 0; b < half; b++) {
    let x = valuesAt(scratch, cols);
    let xs = scalesAt(scratch, cols);
    let sums = sumsAt(scratch);
    let y = to;
    unpackTwoBlocks(codes, apart, groups, group, mask, unpacked);
    for (let row: i32 = 0; row < fours; row += 4) {
      int8Fours<S, D>(
        unpacked,
        scales,
        scalesApart,
        groups,
        group,
        x,
        xs,
        sums,
        mask,
        y,
        outApart,
        outStride,
        accumulate,
      );
      x += (cols as usize) << 2;
      xs += (groups as usize) << 4;
      sums += (groups as usize) << 4;
      y += outStride << 2;
    }
    codes += bytes;
    scales += groupsScales;
    to += 16;
  }
  multiplyFew<Nibbles, S, D>(matrix, begin, 2 * half, fours, rows, scratch, out, outStride, accumulate);
  to = out + (((2 * half) as usize) << 4);
  multiplyFew<Nibbles, S, D>(
    matrix,
    begin + 2 * half,
    n - 2 * half,
    0,
    rows,
    scratch,
    to,
    outStride,
    accumulate,
  );
}

@inline
function isCodes(kind: i32): bool {
  return kind == KIND_AFFINE4 || kind == KIND_AFFINE8;
}

/** Columns of a group; a dense matrix is one. */
@inline
function groupOf(matrix: usize): i32 {
  const group = load<i32>(matrix, MATRIX_GROUP);
  return group ? group : load<i32>(matrix, MATRIX_COLS);
}

// A thread's scratch holds prepared activations: group sums, scales of int8 ones, values. A tile of 32 rows
// has no more groups of codes than a row has columns, and a dense row's one group has a sum too.

/** Bytes behind SCRATCH_PREPARED of a tile's activations. */
function preparedBytes(matrix: usize, kind: i32, int8: bool, rows: i32): usize {
  const cols = load<i32>(matrix, MATRIX_COLS);
  const values = ((rows * cols) as usize) << (int8 && isCodes(kind) ? 0 : 2);
  return valuesAt(0, cols) + values - SCRATCH_PREPARED;
}

@inline
function sumsAt(scratch: usize): usize {
  return scratch + SCRATCH_PREPARED;
}

@inline
function scalesAt(scratch: usize, cols: i32): usize {
  return sumsAt(scratch) + ((max(cols, ROW_TILE) as usize) << 2);
}

@inline
function valuesAt(scratch: usize, cols: i32): usize {
  return scalesAt(scratch, cols) + ((cols as usize) << 2);
}

/** Of int8 activations, behind the values of 32 rows: two blocks of weights, a byte each. */
@inline
function unpackedAt(scratch: usize, cols: i32): usize {
  return valuesAt(scratch, cols) + ((ROW_TILE * cols) as usize);
}
