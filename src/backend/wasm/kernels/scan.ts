// The state scan of Gated DeltaNet; the maths as in conv.ts.
import {
  PASS_SEGMENTS,
  SCAN_COLUMNS,
  SCRATCH_PREPARED,
  SEGMENT_FIRST_ROW,
  SEGMENT_NEXT_SLOT,
  SEGMENT_ROWS,
  SEGMENT_START,
  SEGMENT_STATE_SLOT,
  SEGMENT_WINDOW,
} from "../layout";
import { logOf, logWindow, publishHistory } from "./log";
import { madd } from "./math";
import { pathOf, positionOf, rowOnPath, segmentAt } from "./segment";
import { nextUnit, share } from "./sync";

/**
 * SCAN. For each row of a segment in order: S ← g·S; δ = β·(v − Sᵀk); S ← S + k·δᵀ; o = Sᵀq, with
 * the sums over the key dim ascending, in f32.
 *
 * Units: one a segment that publishes the conv history, or logs a window's rows, which takes longest; then
 * (segment, value head, unitColumns of the value dim). A unit reads and writes its own columns of S and no
 * others, so the state may be updated in place (stateSlot = nextSlot); validatePlan has refused plans in which
 * a written slot is read by another segment. The first row reads stateSlot, the last writes nextSlot.
 *
 * From the first row to the last the state is in the thread's scratch; a window's stays there, and its rows are
 * logged for KEEP. A tree's row whose parent isn't the row before it begins again from the slot's state and
 * steps over its ancestors, so that its bits are those of a chain.
 * Operands: conv out, stride, gates, stride, state, state slot bytes, o, stride, key heads, value heads,
 * key dim, value dim, raw rows record (log.ts).
 */
export function scan(op: usize, pass: usize, scratch: usize, threads: i32): void {
  const valueHeads = load<i32>(op, 44);
  const valueDim = load<i32>(op, 52);
  const segments = load<i32>(pass, PASS_SEGMENTS);
  const columns = unitColumns(segments * valueHeads, valueDim, threads);
  const slices = valueDim / columns;
  share(segments * valueHeads * slices + segments);
  for (let unit = nextUnit(); unit >= 0; unit = nextUnit()) {
    if (unit >= segments) {
      const slice = unit - segments;
      const segment = segmentAt(pass, slice / (valueHeads * slices));
      const rest = slice % (valueHeads * slices);
      const from = (rest % slices) * columns;
      for (let column = from; column < from + columns; column += SCAN_COLUMNS)
        scanColumns(op, pass, segment, rest / slices, column, scratch);
    } else {
      const record = load<u32>(op, 56) as usize;
      const segment = segmentAt(pass, unit);
      if (load<i32>(segment, SEGMENT_WINDOW) != 0) {
        logWindow(op, record, segment);
      } else {
        const qkv = load<u32>(record) as usize;
        const stride = load<u32>(record, 4) as usize;
        const first = load<i32>(segment, SEGMENT_FIRST_ROW) as usize;
        publishHistory(record, segment, qkv + first * stride, stride);
      }
    }
  }
}

/**
 * How many columns of a head's state a unit owns: all, where there are two heads a thread; else SCAN_COLUMNS, so
 * that all threads have work alike. Neighbouring columns share pages and the lines that a core brings along, so
 * that one thread is faster with all of them.
 */
@inline
export function unitColumns(heads: i32, valueDim: i32, threads: i32): i32 {
  return heads >= 2 * threads ? valueDim : SCAN_COLUMNS;
}

function scanColumns(
  op: usize,
  pass: usize,
  segment: usize,
  head: i32,
  column: i32,
  scratch: usize,
): void {
  const first = load<i32>(segment, SEGMENT_FIRST_ROW);
  const rows = load<i32>(segment, SEGMENT_ROWS);
  for (let local: i32 = 0; local < rows; local++) {
    while (local + 1 < rows && isChild(pass, segment, local + 1)) local++;
    // From the root on to here: of another branch, its ancestors once more, whose outputs stay what they are.
    const depth = positionOf(pass, first + local) - load<i32>(segment, SEGMENT_START);
    scanPath(op, segment, pathOf(segment, local), depth + 1, head, column, scratch);
  }
}

/** Whether a segment's row is the child of the row before it. */
@inline
function isChild(pass: usize, segment: usize, local: i32): bool {
  const path = pathOf(segment, local);
  if (!path) return true;
  const row = load<i32>(segment, SEGMENT_FIRST_ROW) + local;
  const depth = positionOf(pass, row) - load<i32>(segment, SEGMENT_START);
  return rowOnPath(path, depth - 1) == local - 1;
}

/** Rows of one path from the slot's state on, for one head's columns. */
function scanPath(
  op: usize,
  segment: usize,
  path: usize,
  count: i32,
  head: i32,
  column: i32,
  scratch: usize,
): void {
  const keyHeads = load<i32>(op, 40);
  const valueHeads = load<i32>(op, 44);
  const keyDim = load<i32>(op, 48);
  const valueDim = load<i32>(op, 52);
  const isWindow = load<i32>(segment, SEGMENT_WINDOW) != 0;
  const first = load<i32>(segment, SEGMENT_FIRST_ROW);
  const keyHead = head / (valueHeads / keyHeads);
  const keyAt = (((keyHeads + keyHead) * keyDim) as usize) << 2;
  const queryAt = ((keyHead * keyDim) as usize) << 2;
  const valueAt = ((2 * keyHeads * keyDim + head * valueDim + column) as usize) << 2;
  const outAt = ((head * valueDim + column) as usize) << 2;
  const gateAt = (head as usize) << 3;
  const record = load<u32>(op, 56) as usize;
  const deltaAt = ((load<i32>(record, 16) + keyHeads * keyDim) << 2) as usize;
  const stride = load<u32>(op, 12) as usize;
  const gateStride = load<u32>(op, 20) as usize;
  const rowBytes = (valueDim as usize) << 2;
  const slotBytes = load<u32>(op, 28) as usize;
  const states =
    (load<u32>(op, 24) as usize) + (((head * keyDim * valueDim + column) as usize) << 2);
  const state = states + (load<i32>(segment, SEGMENT_STATE_SLOT) as usize) * slotBytes;
  const next = states + (load<i32>(segment, SEGMENT_NEXT_SLOT) as usize) * slotBytes;
  const faded = scratch + SCRATCH_PREPARED;
  let local = rowOnPath(path, 0);
  let channels = (load<u32>(op, 8) as usize) + ((first + local) as usize) * stride;
  let gates = (load<u32>(op, 16) as usize) + ((first + local) as usize) * gateStride + gateAt;
  fade(state, rowBytes, faded, channels + keyAt, keyDim, gates, scratch);
  for (let depth: i32 = 0; depth < count; depth++) {
    const row = (first + local) as usize;
    correct(scratch, channels + valueAt, gates);
    if (isWindow) copy64(logOf(record, segment, local) + deltaAt + outAt, scratch);
    const q = channels + queryAt;
    const k = channels + keyAt;
    const out = (load<u32>(op, 32) as usize) + row * (load<u32>(op, 36) as usize) + outAt;
    if (depth + 1 < count) {
      local = rowOnPath(path, depth + 1);
      channels = (load<u32>(op, 8) as usize) + ((first + local) as usize) * stride;
      gates = (load<u32>(op, 16) as usize) + ((first + local) as usize) * gateStride + gateAt;
      advance(faded, q, k, channels + keyAt, keyDim, gates, scratch, out);
    } else if (isWindow) {
      finish(faded, faded, (SCAN_COLUMNS as usize) << 2, q, k, keyDim, scratch, out);
    } else {
      finish(faded, next, rowBytes, q, k, keyDim, scratch, out);
    }
  }
}

// A step of 16 columns takes two walks over the state: one for Sᵀk, one for the new S and Sᵀq. The first walk
// of a row is done with the second of the row before it: `faded` [key dim, 16] holds g·S with the g of the row
// that comes next, and `sums` its Sᵀk, which `correct` makes δ of.

/** The first row's first walk. */
function fade(
  state: usize,
  rowBytes: usize,
  faded: usize,
  k: usize,
  keyDim: i32,
  gates: usize,
  sums: usize,
): void {
  const g = v128.load32_splat(gates);
  const zero = f32x4.splat(0);
  let p0 = zero;
  let p1 = zero;
  let p2 = zero;
  let p3 = zero;
  const end = k + ((keyDim as usize) << 2);
  for (; k < end; k += 4) {
    const ki = v128.load32_splat(k);
    const s0 = f32x4.mul(g, v128.load(state));
    const s1 = f32x4.mul(g, v128.load(state, 16));
    const s2 = f32x4.mul(g, v128.load(state, 32));
    const s3 = f32x4.mul(g, v128.load(state, 48));
    put64(faded, s0, s1, s2, s3);
    p0 = madd(s0, ki, p0);
    p1 = madd(s1, ki, p1);
    p2 = madd(s2, ki, p2);
    p3 = madd(s3, ki, p3);
    state += rowBytes;
    faded += 64;
  }
  put64(sums, p0, p1, p2, p3);
}

/** δ = β·(v − Sᵀk), in place. */
@inline
function correct(sums: usize, v: usize, gates: usize): void {
  const beta = v128.load32_splat(gates, 4);
  for (let i: usize = 0; i < 64; i += 16) {
    v128.store(sums + i, f32x4.mul(beta, f32x4.sub(v128.load(v + i), v128.load(sums + i))));
  }
}

/**
 * A row's second walk and the next row's first. `sums` holds δ, then the next Sᵀk. δ is loaded at each key: V8
 * has no registers left to keep it in.
 */
function advance(
  faded: usize,
  q: usize,
  k: usize,
  nextK: usize,
  keyDim: i32,
  nextGates: usize,
  sums: usize,
  out: usize,
): void {
  const g = v128.load32_splat(nextGates);
  const zero = f32x4.splat(0);
  let o0 = zero;
  let o1 = zero;
  let o2 = zero;
  let o3 = zero;
  let p0 = zero;
  let p1 = zero;
  let p2 = zero;
  let p3 = zero;
  const end = k + ((keyDim as usize) << 2);
  for (; k < end; k += 4) {
    const ki = v128.load32_splat(k);
    const qi = v128.load32_splat(q);
    const next = v128.load32_splat(nextK);
    let s = madd(ki, v128.load(sums), v128.load(faded));
    o0 = madd(s, qi, o0);
    s = f32x4.mul(g, s);
    v128.store(faded, s);
    p0 = madd(s, next, p0);
    s = madd(ki, v128.load(sums, 16), v128.load(faded, 16));
    o1 = madd(s, qi, o1);
    s = f32x4.mul(g, s);
    v128.store(faded, s, 16);
    p1 = madd(s, next, p1);
    s = madd(ki, v128.load(sums, 32), v128.load(faded, 32));
    o2 = madd(s, qi, o2);
    s = f32x4.mul(g, s);
    v128.store(faded, s, 32);
    p2 = madd(s, next, p2);
    s = madd(ki, v128.load(sums, 48), v128.load(faded, 48));
    o3 = madd(s, qi, o3);
    s = f32x4.mul(g, s);
    v128.store(faded, s, 48);
    p3 = madd(s, next, p3);
    q += 4;
    nextK += 4;
    faded += 64;
  }
  put64(out, o0, o1, o2, o3);
  put64(sums, p0, p1, p2, p3);
}

/** The last row's second walk, whose state goes to `to`. */
function finish(
  faded: usize,
  to: usize,
  toRowBytes: usize,
  q: usize,
  k: usize,
  keyDim: i32,
  delta: usize,
  out: usize,
): void {
  const d0 = v128.load(delta);
  const d1 = v128.load(delta, 16);
  const d2 = v128.load(delta, 32);
  const d3 = v128.load(delta, 48);
  const zero = f32x4.splat(0);
  let o0 = zero;
  let o1 = zero;
  let o2 = zero;
  let o3 = zero;
  const end = k + ((keyDim as usize) << 2);
  for (; k < end; k += 4) {
    const ki = v128.load32_splat(k);
    const qi = v128.load32_splat(q);
    const s0 = madd(ki, d0, v128.load(faded));
    const s1 = madd(ki, d1, v128.load(faded, 16));
    const s2 = madd(ki, d2, v128.load(faded, 32));
    const s3 = madd(ki, d3, v128.load(faded, 48));
    put64(to, s0, s1, s2, s3);
    o0 = madd(s0, qi, o0);
    o1 = madd(s1, qi, o1);
    o2 = madd(s2, qi, o2);
    o3 = madd(s3, qi, o3);
    q += 4;
    faded += 64;
    to += toRowBytes;
  }
  put64(out, o0, o1, o2, o3);
}

@inline
function put64(to: usize, a: v128, b: v128, c: v128, d: v128): void {
  v128.store(to, a);
  v128.store(to, b, 16);
  v128.store(to, c, 32);
  v128.store(to, d, 48);
}

@inline
function copy64(to: usize, from: usize): void {
  put64(to, v128.load(from), v128.load(from, 16), v128.load(from, 32), v128.load(from, 48));
}
