// Gated DeltaNet between its projections: convolution and gates, then the state scan.
// Source of the maths: Yang et al., "Gated Delta Networks" (arXiv 2412.06464), as Qwen3.5 uses it.
import {
  PASS_ROW_SEGMENTS,
  PASS_SEGMENTS,
  PASS_SEGMENT_TABLE,
  SCAN_COLUMNS,
  SCRATCH_PREPARED,
  SEGMENT_BYTES,
  SEGMENT_FIRST_ROW,
  SEGMENT_NEXT_SLOT,
  SEGMENT_ROWS,
  SEGMENT_STATE_SLOT,
  SEGMENT_WINDOW,
} from "../layout";
import { exp1, madd, silu4, sigmoid4, softplus, sumOfSquares } from "./math";
import { nextUnit, share } from "./sync";

@inline
function segmentOf(pass: usize, index: i32): usize {
  return (load<u32>(pass, PASS_SEGMENT_TABLE) as usize) + (index as usize) * SEGMENT_BYTES;
}

/**
 * CONV. c[t, ch] = silu(Σ_j w[j, ch] · m[t − taps + 1 + j, ch]), taps in order j = 0 …, then q and k
 * heads divided by their length (q also by √dk); β = sigmoid(b), g = exp(−exp(A_log)·softplus(a + dt)).
 * Rows before the segment's first come from the slot's history. Unit = (row, head of q, k or v).
 * Operands: qkv, stride, weights [taps, channels], taps, history, history slot bytes, out, out stride,
 * key heads, value heads, key dim, value dim, gates record.
 * Gates record: b, b stride, a, a stride, −exp(A_log), dt_bias, gates out [row, value heads, 2], stride.
 */
export function conv(op: usize, pass: usize, rows: i32): void {
  const keyHeads = load<i32>(op, 40);
  const valueHeads = load<i32>(op, 44);
  const keyDim = load<i32>(op, 48);
  const valueDim = load<i32>(op, 52);
  const heads = 2 * keyHeads + valueHeads;
  share(rows * heads);
  for (let unit = nextUnit(); unit >= 0; unit = nextUnit()) {
    const row = unit / heads;
    const head = unit % heads;
    const isValue = head >= 2 * keyHeads;
    const width = isValue ? valueDim : keyDim;
    const channel = isValue
      ? 2 * keyHeads * keyDim + (head - 2 * keyHeads) * valueDim
      : head * keyDim;
    const out =
      (load<u32>(op, 32) as usize) +
      (row as usize) * (load<u32>(op, 36) as usize) +
      ((channel as usize) << 2);
    convolve(op, pass, row, channel, width, out);
    if (isValue) {
      gate(load<u32>(op, 56) as usize, row, head - 2 * keyHeads);
    } else {
      normalise(out, width, head < keyHeads);
    }
  }
}

function convolve(op: usize, pass: usize, row: i32, channel: i32, width: i32, out: usize): void {
  const qkv = load<u32>(op, 8) as usize;
  const stride = load<u32>(op, 12) as usize;
  const taps = load<i32>(op, 20);
  const channels = 2 * load<i32>(op, 40) * load<i32>(op, 48) + load<i32>(op, 44) * load<i32>(op, 52);
  const channelBytes = (channels as usize) << 2;
  const rowSegments = load<u32>(pass, PASS_ROW_SEGMENTS) as usize;
  const segment = segmentOf(pass, load<i32>(rowSegments + ((row as usize) << 2)));
  const local = row - load<i32>(segment, SEGMENT_FIRST_ROW);
  const slot = load<i32>(segment, SEGMENT_STATE_SLOT) as usize;
  const history = (load<u32>(op, 24) as usize) + slot * (load<u32>(op, 28) as usize);
  const at = (channel as usize) << 2;
  for (let i: usize = 0; i < (width as usize) << 2; i += 16) {
    let acc = f32x4.splat(0);
    for (let j: i32 = 0; j < taps; j++) {
      const back = taps - 1 - j;
      const source =
        local >= back
          ? qkv + ((row - back) as usize) * stride
          : history + ((local + j) as usize) * channelBytes;
      const w = (load<u32>(op, 16) as usize) + (j as usize) * channelBytes;
      acc = madd(v128.load(w + at + i), v128.load(source + at + i), acc);
    }
    v128.store(out + i, silu4(acc));
  }
}

/** v / √(Σv² + 1e-6), queries also / √width (transformers' and FLA's epsilon on the sum). */
function normalise(v: usize, width: i32, query: bool): void {
  const sum: f32 = sumOfSquares(v, width) + 1e-6;
  // As in norm.ts: an overflow becomes NaN.
  let scale: f32 = 1 / sqrt<f32>(sum) + (sum - sum);
  if (query) scale *= 1 / sqrt<f32>(width as f32);
  const s = f32x4.splat(scale);
  for (let i: usize = 0; i < (width as usize) << 2; i += 16) {
    v128.store(v + i, f32x4.mul(v128.load(v + i), s));
  }
}

/** Writes g and β of one row and value head. */
function gate(record: usize, row: i32, head: i32): void {
  const r = row as usize;
  const h = (head as usize) << 2;
  const b = load<f32>((load<u32>(record) as usize) + r * (load<u32>(record, 4) as usize) + h);
  const a = load<f32>((load<u32>(record, 8) as usize) + r * (load<u32>(record, 12) as usize) + h);
  const rate = load<f32>((load<u32>(record, 16) as usize) + h);
  const bias = load<f32>((load<u32>(record, 20) as usize) + h);
  const out = (load<u32>(record, 24) as usize) + r * (load<u32>(record, 28) as usize) + (h << 1);
  store<f32>(out, exp1(rate * softplus(a + bias)));
  store<f32>(out, f32x4.extract_lane(sigmoid4(f32x4.splat(b)), 0), 4);
}

/**
 * SCAN. For each row of a segment in order: S ← g·S; δ = β·(v − Sᵀk); S ← S + k·δᵀ; o = Sᵀq, with
 * the sums over the key dim ascending, in f32.
 *
 * Unit = (segment, value head, SCAN_COLUMNS columns of the value dim), then one unit a segment that
 * publishes the conv history, or logs a window's rows. A unit reads and writes its own columns of S and no others, so the
 * state may be updated in place (stateSlot = nextSlot); validatePlan has refused plans in which a
 * written slot is read by another segment. When the slots differ, the first row reads stateSlot and
 * writes nextSlot, and the rest stay there. A window's state goes on in the thread's scratch instead, and
 * its rows are logged for KEEP.
 * Operands: conv out, stride, gates, stride, state, state slot bytes, o, stride, key heads, value heads,
 * key dim, value dim, raw rows record {qkv, stride, history, history slot bytes, channels, taps − 1, log,
 * log slot bytes, log row bytes}. A log row: raw qkv, keys, δ, decays.
 */
export function scan(op: usize, pass: usize, scratch: usize): void {
  const valueHeads = load<i32>(op, 44);
  const slices = load<i32>(op, 52) / SCAN_COLUMNS;
  const segments = load<i32>(pass, PASS_SEGMENTS);
  const columnsUnits = segments * valueHeads * slices;
  share(columnsUnits + segments);
  for (let unit = nextUnit(); unit >= 0; unit = nextUnit()) {
    if (unit < columnsUnits) {
      const segment = segmentOf(pass, unit / (valueHeads * slices));
      const rest = unit % (valueHeads * slices);
      scanColumns(op, segment, rest / slices, (rest % slices) * SCAN_COLUMNS, scratch);
    } else {
      const record = load<u32>(op, 56) as usize;
      const segment = segmentOf(pass, unit - columnsUnits);
      if (load<i32>(segment, SEGMENT_WINDOW) != 0) {
        logWindow(op, record, segment);
      } else {
        publishHistory(record, segment, load<u32>(record) as usize, load<u32>(record, 4) as usize);
      }
    }
  }
}

function scanColumns(op: usize, segment: usize, head: i32, column: i32, scratch: usize): void {
  const convStride = load<u32>(op, 12) as usize;
  const gateStride = load<u32>(op, 20) as usize;
  const slotBytes = load<u32>(op, 28) as usize;
  const outStride = load<u32>(op, 36) as usize;
  const keyHeads = load<i32>(op, 40);
  const valueHeads = load<i32>(op, 44);
  const keyDim = load<i32>(op, 48);
  const valueDim = load<i32>(op, 52);
  const first = load<i32>(segment, SEGMENT_FIRST_ROW) as usize;
  const rows = load<i32>(segment, SEGMENT_ROWS) as usize;
  const keyHead = head / (valueHeads / keyHeads);
  const rowBytes = (valueDim as usize) << 2;
  const within =
    (((head * keyDim * valueDim) as usize) << 2) + ((column as usize) << 2);
  const state = load<u32>(op, 24) as usize;
  const stateSlot = load<i32>(segment, SEGMENT_STATE_SLOT) as usize;
  const isWindow = load<i32>(segment, SEGMENT_WINDOW) != 0;
  const next = isWindow
    ? scratch + SCRATCH_PREPARED
    : state + (load<i32>(segment, SEGMENT_NEXT_SLOT) as usize) * slotBytes + within;
  const nextRowBytes = isWindow ? (SCAN_COLUMNS as usize) << 2 : rowBytes;
  let from = state + stateSlot * slotBytes + within;
  let fromRowBytes = rowBytes;
  const record = load<u32>(op, 56) as usize;
  let delta: usize = 0;
  if (isWindow) {
    const before = load<i32>(record, 16) + keyHeads * keyDim + head * valueDim + column;
    delta = logOf(record, segment) + ((before as usize) << 2);
  }
  const convOut = load<u32>(op, 8) as usize;
  const gates = load<u32>(op, 16) as usize;
  const outBase =
    (load<u32>(op, 32) as usize) + (((head * valueDim + column) as usize) << 2);
  for (let row = first; row < first + rows; row++) {
    const channels = convOut + row * convStride;
    const q = channels + (((keyHead * keyDim) as usize) << 2);
    const k = q + (((keyHeads * keyDim) as usize) << 2);
    const v =
      channels + (((2 * keyHeads * keyDim + head * valueDim + column) as usize) << 2);
    const gateAt = gates + row * gateStride + ((head as usize) << 3);
    const out = outBase + row * outStride;
    step(from, fromRowBytes, next, nextRowBytes, q, k, v, keyDim, gateAt, out, delta);
    from = next;
    fromRowBytes = nextRowBytes;
    if (isWindow) delta += load<u32>(record, 32) as usize;
  }
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

/** The first log row of a segment's slot. */
@inline
function logOf(record: usize, segment: usize): usize {
  const slot = load<i32>(segment, SEGMENT_STATE_SLOT) as usize;
  return (load<u32>(record, 24) as usize) + slot * (load<u32>(record, 28) as usize);
}

/** Logs a window's raw rows, keys and decays; its δ are logged by the scan's units. */
function logWindow(op: usize, record: usize, segment: usize): void {
  const keyBytes = ((load<i32>(op, 40) * load<i32>(op, 48)) as usize) << 2;
  const valueHeads = load<i32>(op, 44);
  const valueBytes = ((valueHeads * load<i32>(op, 52)) as usize) << 2;
  const rawBytes = (load<i32>(record, 16) as usize) << 2;
  const first = load<i32>(segment, SEGMENT_FIRST_ROW) as usize;
  const rows = load<i32>(segment, SEGMENT_ROWS) as usize;
  let to = logOf(record, segment);
  for (let row = first; row < first + rows; row++) {
    const qkv = (load<u32>(record) as usize) + row * (load<u32>(record, 4) as usize);
    const keys = (load<u32>(op, 8) as usize) + row * (load<u32>(op, 12) as usize) + keyBytes;
    const gates = (load<u32>(op, 16) as usize) + row * (load<u32>(op, 20) as usize);
    memory.copy(to, qkv, rawBytes);
    memory.copy(to + rawBytes, keys, keyBytes);
    const decays = to + rawBytes + keyBytes + valueBytes;
    for (let head: usize = 0; head < (valueHeads as usize); head++) {
      store<f32>(decays + (head << 2), load<f32>(gates + (head << 3)));
    }
    to += load<u32>(record, 32) as usize;
  }
}

/**
 * KEEP. Commits a window's first rows: S ← g·S; S ← S + k·δᵀ with the logged k, δ and g, which are the
 * operations of SCAN in its order; then the conv history of the logged raw rows. Segments of the pass are
 * the windows, and their rows those to commit. Units as of SCAN; a unit reads and writes its own words.
 * Operands: state, state slot bytes, key heads, value heads, key dim, value dim, raw rows record (SCAN).
 */
export function keep(op: usize, pass: usize, windows: i32): void {
  const valueHeads = load<i32>(op, 20);
  const slices = load<i32>(op, 28) / SCAN_COLUMNS;
  const record = load<u32>(op, 32) as usize;
  const columnsUnits = windows * valueHeads * slices;
  share(columnsUnits + windows);
  for (let unit = nextUnit(); unit >= 0; unit = nextUnit()) {
    if (unit < columnsUnits) {
      const segment = segmentOf(pass, unit / (valueHeads * slices));
      const rest = unit % (valueHeads * slices);
      keepColumns(op, record, segment, rest / slices, (rest % slices) * SCAN_COLUMNS);
    } else {
      const segment = segmentOf(pass, unit - columnsUnits);
      publishHistory(record, segment, logOf(record, segment), load<u32>(record, 32) as usize);
    }
  }
}

function keepColumns(op: usize, record: usize, segment: usize, head: i32, column: i32): void {
  const keyHeads = load<i32>(op, 16);
  const valueHeads = load<i32>(op, 20);
  const keyDim = load<i32>(op, 24);
  const valueDim = load<i32>(op, 28);
  const keyHead = head / (valueHeads / keyHeads);
  const rowBytes = (valueDim as usize) << 2;
  const slot = load<i32>(segment, SEGMENT_STATE_SLOT) as usize;
  const state =
    (load<u32>(op, 8) as usize) +
    slot * (load<u32>(op, 12) as usize) +
    (((head * keyDim * valueDim + column) as usize) << 2);
  const raw = load<i32>(record, 16);
  const afterKeys = raw + keyHeads * keyDim;
  let row = logOf(record, segment);
  for (let left = load<i32>(segment, SEGMENT_ROWS); left > 0; left--) {
    const k = row + (((raw + keyHead * keyDim) as usize) << 2);
    const delta = row + (((afterKeys + head * valueDim + column) as usize) << 2);
    const decays = row + (((afterKeys + valueHeads * valueDim) as usize) << 2);
    const g = v128.load32_splat(decays + ((head as usize) << 2));
    const d0 = v128.load(delta);
    const d1 = v128.load(delta, 16);
    const d2 = v128.load(delta, 32);
    const d3 = v128.load(delta, 48);
    let s = state;
    for (let i: usize = 0; i < (keyDim as usize) << 2; i += 4) {
      const ki = v128.load32_splat(k + i);
      v128.store(s, madd(ki, d0, f32x4.mul(g, v128.load(s))));
      v128.store(s, madd(ki, d1, f32x4.mul(g, v128.load(s, 16))), 16);
      v128.store(s, madd(ki, d2, f32x4.mul(g, v128.load(s, 32))), 32);
      v128.store(s, madd(ki, d3, f32x4.mul(g, v128.load(s, 48))), 48);
      s += rowBytes;
    }
    row += load<u32>(record, 32) as usize;
  }
}

/**
 * The next slot's history: the last taps − 1 raw rows of (old history, the segment's rows), which lie at
 * `qkv`.
 */
function publishHistory(record: usize, segment: usize, qkv: usize, stride: usize): void {
  const slotBytes = load<u32>(record, 12) as usize;
  const history = load<u32>(record, 8) as usize;
  const channelBytes = (load<i32>(record, 16) as usize) << 2;
  const depth = load<i32>(record, 20);
  const first = load<i32>(segment, SEGMENT_FIRST_ROW);
  const rows = load<i32>(segment, SEGMENT_ROWS);
  const from = history + (load<i32>(segment, SEGMENT_STATE_SLOT) as usize) * slotBytes;
  const to = history + (load<i32>(segment, SEGMENT_NEXT_SLOT) as usize) * slotBytes;
  for (let j: i32 = 0; j < depth; j++) {
    const local = rows - depth + j;
    const source =
      local >= 0
        ? qkv + ((first + local) as usize) * stride
        : from + ((local + depth) as usize) * channelBytes;
    memory.copy(to + (j as usize) * channelBytes, source, channelBytes);
  }
}
