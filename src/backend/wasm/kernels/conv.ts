// Gated DeltaNet before its scan: the convolution with head norms, and the gates.
// Source of the maths: Yang et al., "Gated Delta Networks" (arXiv 2412.06464), as Qwen3.5 uses it.
import { SEGMENT_FIRST_ROW, SEGMENT_START, SEGMENT_STATE_SLOT } from "../layout";
import { exp1, madd, sigmoid4, silu4, softplus, sumOfSquares } from "./math";
import { pathOf, positionOf, rowOnPath, segmentOf } from "./segment";
import { nextUnit, share } from "./sync";

/**
 * CONV. c[t, ch] = silu(Σ_j w[j, ch] · m[t − taps + 1 + j, ch]), taps in order j = 0 …, then q and k
 * heads divided by their length (q also by √dk); β = sigmoid(b), g = exp(−exp(A_log)·softplus(a + dt)).
 * The taps are the row's ancestors in its segment, then rows of the slot's history.
 * Unit = (row, head of q, k or v).
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
  const segment = segmentOf(pass, row);
  const first = load<i32>(segment, SEGMENT_FIRST_ROW);
  const path = pathOf(segment, row - first);
  const depth = positionOf(pass, row) - load<i32>(segment, SEGMENT_START);
  const slot = load<i32>(segment, SEGMENT_STATE_SLOT) as usize;
  const history = (load<u32>(op, 24) as usize) + slot * (load<u32>(op, 28) as usize);
  const at = (channel as usize) << 2;
  const weights = (load<u32>(op, 16) as usize) + at;
  // Two vectors of channels share the way to their rows.
  for (let i: usize = 0; i < (width as usize) << 2; i += 32) {
    let first4 = f32x4.splat(0);
    let next4 = first4;
    for (let j: i32 = 0; j < taps; j++) {
      const from = depth - (taps - 1 - j);
      const source =
        from >= 0
          ? qkv + ((first + rowOnPath(path, from)) as usize) * stride
          : history + ((from + taps - 1) as usize) * channelBytes;
      const x = source + at + i;
      const w = weights + (j as usize) * channelBytes + i;
      first4 = madd(v128.load(w), v128.load(x), first4);
      next4 = madd(v128.load(w, 16), v128.load(x, 16), next4);
    }
    v128.store(out + i, silu4(first4));
    v128.store(out + i, silu4(next4), 16);
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
