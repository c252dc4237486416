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
 * Unit = (segment, value head, SCAN_COLUMNS columns of the value dim), then one unit a segment that
 * publishes the conv history, or logs a window's rows. A unit reads and writes its own columns of S and no
 * others, so the state may be updated in place (stateSlot = nextSlot); validatePlan has refused plans in
 * which a written slot is read by another segment. When the slots differ, the first row reads stateSlot and
 * writes nextSlot, and the rest stay there.
 *
 * A window's state goes on in the thread's scratch instead, and its rows are logged for KEEP. A tree's row
 * whose parent isn't the row before it begins again from the slot's state and steps over its ancestors, so
 * that its bits are those of a chain.
 * Operands: conv out, stride, gates, stride, state, state slot bytes, o, stride, key heads, value heads,
 * key dim, value dim, raw rows record (log.ts).
 */
export function scan(op: usize, pass: usize, scratch: usize): void {
  const valueHeads = load<i32>(op, 44);
  const slices = load<i32>(op, 52) / SCAN_COLUMNS;
  const segments = load<i32>(pass, PASS_SEGMENTS);
  const columnsUnits = segments * valueHeads * slices;
  share(columnsUnits + segments);
  for (let unit = nextUnit(); unit >= 0; unit = nextUnit()) {
    if (unit < columnsUnits) {
      const segment = segmentAt(pass, unit / (valueHeads * slices));
      const rest = unit % (valueHeads * slices);
      scanColumns(op, pass, segment, rest / slices, (rest % slices) * SCAN_COLUMNS, scratch);
    } else {
      const record = load<u32>(op, 56) as usize;
      const segment = segmentAt(pass, unit - columnsUnits);
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

function scanColumns(
  op: usize,
  pass: usize,
  segment: usize,
  head: i32,
  column: i32,
  scratch: usize,
): void {
  const slotBytes = load<u32>(op, 28) as usize;
  const keyDim = load<i32>(op, 48);
  const valueDim = load<i32>(op, 52);
  const first = load<i32>(segment, SEGMENT_FIRST_ROW);
  const rows = load<i32>(segment, SEGMENT_ROWS);
  const rowBytes = (valueDim as usize) << 2;
  const within = ((head * keyDim * valueDim + column) as usize) << 2;
  const states = (load<u32>(op, 24) as usize) + within;
  const state = states + (load<i32>(segment, SEGMENT_STATE_SLOT) as usize) * slotBytes;
  const isWindow = load<i32>(segment, SEGMENT_WINDOW) != 0;
  const next = isWindow
    ? scratch + SCRATCH_PREPARED
    : states + (load<i32>(segment, SEGMENT_NEXT_SLOT) as usize) * slotBytes;
  const nextRowBytes = isWindow ? (SCAN_COLUMNS as usize) << 2 : rowBytes;
  let from = state;
  let fromRowBytes = rowBytes;
  for (let local: i32 = 0; local < rows; local++) {
    const path = pathOf(segment, local);
    if (path) {
      const depth = positionOf(pass, first + local) - load<i32>(segment, SEGMENT_START);
      if (depth > 0 && rowOnPath(path, depth - 1) != local - 1) {
        // Another branch: its ancestors once more, whose outputs become what they are.
        from = state;
        fromRowBytes = rowBytes;
        for (let above: i32 = 0; above < depth; above++) {
          const ancestor = rowOnPath(path, above);
          scanRow(op, segment, ancestor, head, column, from, fromRowBytes, next, nextRowBytes);
          from = next;
          fromRowBytes = nextRowBytes;
        }
      }
    }
    scanRow(op, segment, local, head, column, from, fromRowBytes, next, nextRowBytes);
    from = next;
    fromRowBytes = nextRowBytes;
  }
}

/** The step of a segment's row, for one head's columns. */
function scanRow(
  op: usize,
  segment: usize,
  local: i32,
  head: i32,
  column: i32,
  from: usize,
  fromRowBytes: usize,
  next: usize,
  nextRowBytes: usize,
): void {
  const keyHeads = load<i32>(op, 40);
  const valueHeads = load<i32>(op, 44);
  const keyDim = load<i32>(op, 48);
  const valueDim = load<i32>(op, 52);
  const row = (load<i32>(segment, SEGMENT_FIRST_ROW) + local) as usize;
  const keyHead = head / (valueHeads / keyHeads);
  const before = 2 * keyHeads * keyDim + head * valueDim + column;
  const channels = (load<u32>(op, 8) as usize) + row * (load<u32>(op, 12) as usize);
  const q = channels + (((keyHead * keyDim) as usize) << 2);
  const k = q + (((keyHeads * keyDim) as usize) << 2);
  const v = channels + ((before as usize) << 2);
  const gates = (load<u32>(op, 16) as usize) + row * (load<u32>(op, 20) as usize);
  const out =
    (load<u32>(op, 32) as usize) +
    row * (load<u32>(op, 36) as usize) +
    (((head * valueDim + column) as usize) << 2);
  const record = load<u32>(op, 56) as usize;
  let delta: usize = 0;
  if (load<i32>(segment, SEGMENT_WINDOW) != 0) {
    const logged = load<i32>(record, 16) + keyHeads * keyDim + head * valueDim + column;
    delta = logOf(record, segment, local) + ((logged as usize) << 2);
  }
  const gate = gates + ((head as usize) << 3);
  step(from, fromRowBytes, next, nextRowBytes, q, k, v, keyDim, gate, out, delta);
}

/**
 * One step for 16 columns. `from` and `to` are the same words, or different places. δ goes to `delta`
 * too, where that isn't zero.
 */
function step(
  from: usize,
  fromRowBytes: usize,
  to: usize,
  toRowBytes: usize,
  q: usize,
  k: usize,
  v: usize,
  keyDim: i32,
  gates: usize,
  out: usize,
  delta: usize,
): void {
  const g = v128.load32_splat(gates);
  const beta = v128.load32_splat(gates, 4);
  const zero = f32x4.splat(0);
  let p0 = zero;
  let p1 = zero;
  let p2 = zero;
  let p3 = zero;
  let s = from;
  for (let i: usize = 0; i < (keyDim as usize) << 2; i += 4) {
    const ki = v128.load32_splat(k + i);
    p0 = madd(f32x4.mul(g, v128.load(s)), ki, p0);
    p1 = madd(f32x4.mul(g, v128.load(s, 16)), ki, p1);
    p2 = madd(f32x4.mul(g, v128.load(s, 32)), ki, p2);
    p3 = madd(f32x4.mul(g, v128.load(s, 48)), ki, p3);
    s += fromRowBytes;
  }
  const d0 = f32x4.mul(beta, f32x4.sub(v128.load(v), p0));
  const d1 = f32x4.mul(beta, f32x4.sub(v128.load(v, 16), p1));
  const d2 = f32x4.mul(beta, f32x4.sub(v128.load(v, 32), p2));
  const d3 = f32x4.mul(beta, f32x4.sub(v128.load(v, 48), p3));
  if (delta != 0) {
    v128.store(delta, d0);
    v128.store(delta, d1, 16);
    v128.store(delta, d2, 32);
    v128.store(delta, d3, 48);
  }
  let o0 = zero;
  let o1 = zero;
  let o2 = zero;
  let o3 = zero;
  s = from;
  for (let i: usize = 0; i < (keyDim as usize) << 2; i += 4) {
    const ki = v128.load32_splat(k + i);
    const qi = v128.load32_splat(q + i);
    const s0 = madd(ki, d0, f32x4.mul(g, v128.load(s)));
    const s1 = madd(ki, d1, f32x4.mul(g, v128.load(s, 16)));
    const s2 = madd(ki, d2, f32x4.mul(g, v128.load(s, 32)));
    const s3 = madd(ki, d3, f32x4.mul(g, v128.load(s, 48)));
    v128.store(to, s0);
    v128.store(to, s1, 16);
    v128.store(to, s2, 32);
    v128.store(to, s3, 48);
    o0 = madd(s0, qi, o0);
    o1 = madd(s1, qi, o1);
    o2 = madd(s2, qi, o2);
    o3 = madd(s3, qi, o3);
    s += fromRowBytes;
    to += toRowBytes;
  }
  v128.store(out, o0);
  v128.store(out, o1, 16);
  v128.store(out, o2, 32);
  v128.store(out, o3, 48);
}
