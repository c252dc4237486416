// Full attention between its projections: head norms, rotation and the KV write, then the softmax.
import {
  PAGE_ROWS,
  PASS_POSITIONS,
  PASS_ROPE,
  PASS_ROW_SEGMENTS,
  PASS_SEGMENT_TABLE,
  SEGMENT_BYTES,
  SEGMENT_PAGES,
} from "../layout";
import { exp1, exp4, horizontalSum, horizontalSums, madd, sigmoid4 } from "./math";
import { rmsNorm } from "./norm";
import { nextUnit, share } from "./sync";

@inline
function pagesOf(pass: usize, row: usize): usize {
  const segments = load<u32>(pass, PASS_ROW_SEGMENTS) as usize;
  const index = load<i32>(segments + (row << 2)) as usize;
  const segment = (load<u32>(pass, PASS_SEGMENT_TABLE) as usize) + index * SEGMENT_BYTES;
  return load<u32>(segment, SEGMENT_PAGES) as usize;
}

@inline
function positionOf(pass: usize, row: usize): i32 {
  return load<i32>((load<u32>(pass, PASS_POSITIONS) as usize) + (row << 2));
}

/** Rotates pairs (i, i + half): (a, b) → (a·cos − b·sin, b·cos + a·sin). */
@inline
function rotate(v: usize, half: i32, table: usize): void {
  for (let i: usize = 0; i < (half as usize) << 2; i += 4) {
    const far = i + ((half as usize) << 2);
    const a = load<f32>(v + i);
    const b = load<f32>(v + far);
    const cos = load<f32>(table + i);
    const sin = load<f32>(table + far);
    store<f32>(v + i, a * cos - b * sin);
    store<f32>(v + far, b * cos + a * sin);
  }
}

/**
 * ROPE. Queries: normalised, rotated, written to q. Keys: normalised, rotated, written to the page of
 * their position, with their values. Unit = (row, query head or KV head).
 * Operands: query+gate, stride, k, v, kv stride, q norm, k norm, eps, q out, q stride, keys, values,
 * record {heads, kv heads, head dim, rotary dim, page bytes}. A page of one layer is
 * [kv head, 64 rows, head dim] f32.
 */
export function rope(op: usize, pass: usize, rows: i32): void {
  const record = load<u32>(op, 56) as usize;
  const heads = load<i32>(record);
  const kvHeads = load<i32>(record, 4);
  const dim = load<i32>(record, 8);
  const half = load<i32>(record, 12) >> 1;
  const dimBytes = (dim as usize) << 2;
  const eps = load<f32>(op, 36);
  const units = heads + kvHeads;
  share(rows * units);
  for (let unit = nextUnit(); unit >= 0; unit = nextUnit()) {
    const row = (unit / units) as usize;
    const head = unit % units;
    const table = (load<u32>(pass, PASS_ROPE) as usize) + row * ((half as usize) << 3);
    if (head < heads) {
      const from = (load<u32>(op, 8) as usize) + row * (load<u32>(op, 12) as usize);
      const to = (load<u32>(op, 40) as usize) + row * (load<u32>(op, 44) as usize);
      const out = to + (head as usize) * dimBytes;
      // Each head's query is followed by its gate.
      rmsNorm(from + (head as usize) * 2 * dimBytes, dim, eps, load<u32>(op, 28) as usize, out);
      rotate(out, half, table);
    } else {
      const kvHead = (head - heads) as usize;
      const position = positionOf(pass, row);
      const page = load<i32>(pagesOf(pass, row) + ((position / PAGE_ROWS) << 2)) as usize;
      const within = (kvHead * PAGE_ROWS + ((position % PAGE_ROWS) as usize)) * dimBytes;
      const at = page * (load<u32>(record, 16) as usize) + within;
      const source = row * (load<u32>(op, 24) as usize) + kvHead * dimBytes;
      const key = (load<u32>(op, 48) as usize) + at;
      rmsNorm((load<u32>(op, 16) as usize) + source, dim, eps, load<u32>(op, 32) as usize, key);
      rotate(key, half, table);
      const value = (load<u32>(op, 52) as usize) + at;
      memory.copy(value, (load<u32>(op, 20) as usize) + source, dimBytes);
    }
  }
}

/**
 * ATTEND. out = softmax(q·K / √dim)·V ⊙ sigmoid(gate), causal. Keys are walked by absolute position in
 * tiles of 64 with a running maximum and sum, so a row's bits depend on its position alone.
 * Unit = (row, head). Operands: q, stride, query+gate, stride, keys, values, out, out stride, record.
 */
export function attend(op: usize, pass: usize, rows: i32, scratch: usize): void {
  const record = load<u32>(op, 40) as usize;
  const heads = load<i32>(record);
  const kvHeads = load<i32>(record, 4);
  const dim = load<i32>(record, 8);
  const dimBytes = (dim as usize) << 2;
  share(rows * heads);
  for (let unit = nextUnit(); unit >= 0; unit = nextUnit()) {
    const row = (unit / heads) as usize;
    const head = unit % heads;
    const q = (load<u32>(op, 8) as usize) + row * (load<u32>(op, 12) as usize);
    const gates = (load<u32>(op, 16) as usize) + row * (load<u32>(op, 20) as usize);
    const out = (load<u32>(op, 32) as usize) + row * (load<u32>(op, 36) as usize);
    const kvHead = (head / (heads / kvHeads)) as usize;
    attendHead(
      op,
      pagesOf(pass, row),
      load<u32>(record, 16) as usize,
      kvHead * PAGE_ROWS * dimBytes,
      positionOf(pass, row) + 1,
      dim,
      q + (head as usize) * dimBytes,
      gates + ((head as usize) * 2 + 1) * dimBytes,
      out + (head as usize) * dimBytes,
      scratch,
    );
  }
}

function attendHead(
  op: usize,
  pages: usize,
  pageBytes: usize,
  within: usize,
  keys: i32,
  dim: i32,
  q: usize,
  gate: usize,
  out: usize,
  weights: usize,
): void {
  const scale: f32 = 1 / sqrt<f32>(dim as f32);
  const dimBytes = (dim as usize) << 2;
  let peak: f32 = -Infinity;
  let total: f32 = 0;
  memory.fill(out, 0, dimBytes);
  for (let first: i32 = 0; first < keys; first += PAGE_ROWS) {
    const count = min(PAGE_ROWS, keys - first);
    const page = (load<i32>(pages + ((first / PAGE_ROWS) << 2)) as usize) * pageBytes + within;
    const tilePeak = scores((load<u32>(op, 24) as usize) + page, count, q, dim, scale, weights);
    const newPeak = max(peak, tilePeak);
    const fade: f32 = first == 0 ? 0 : exp1(peak - newPeak);
    total = total * fade + exponentials(weights, count, newPeak);
    addValues((load<u32>(op, 28) as usize) + page, count, dim, weights, fade, out);
    peak = newPeak;
  }
  const inverse = f32x4.splat(1 / total);
  for (let i: usize = 0; i < dimBytes; i += 16) {
    const value = f32x4.mul(v128.load(out + i), inverse);
    v128.store(out + i, f32x4.mul(value, sigmoid4(v128.load(gate + i))));
  }
}

/** weights[j] = scale · q·k_j for the tile's keys; returns the largest. One four-lane chain a key. */
function scores(key: usize, count: i32, q: usize, dim: i32, scale: f32, weights: usize): f32 {
  const dimBytes = (dim as usize) << 2;
  let peak: f32 = -Infinity;
  let j: i32 = 0;
  for (; j + 4 <= count; j += 4) {
    const k0 = key + (j as usize) * dimBytes;
    const k1 = k0 + dimBytes;
    const k2 = k1 + dimBytes;
    const k3 = k2 + dimBytes;
    let d0 = f32x4.splat(0);
    let d1 = d0;
    let d2 = d0;
    let d3 = d0;
    for (let i: usize = 0; i < dimBytes; i += 16) {
      const x = v128.load(q + i);
      d0 = madd(x, v128.load(k0 + i), d0);
      d1 = madd(x, v128.load(k1 + i), d1);
      d2 = madd(x, v128.load(k2 + i), d2);
      d3 = madd(x, v128.load(k3 + i), d3);
    }
    const four = f32x4.mul(horizontalSums(d0, d1, d2, d3), f32x4.splat(scale));
    v128.store(weights + ((j as usize) << 2), four);
    peak = max(peak, max(f32x4.extract_lane(four, 0), f32x4.extract_lane(four, 1)));
    peak = max(peak, max(f32x4.extract_lane(four, 2), f32x4.extract_lane(four, 3)));
  }
  for (; j < count; j++) {
    const k = key + (j as usize) * dimBytes;
    let d = f32x4.splat(0);
    for (let i: usize = 0; i < dimBytes; i += 16) {
      d = madd(v128.load(q + i), v128.load(k + i), d);
    }
    const score: f32 = horizontalSum(d) * scale;
    store<f32>(weights + ((j as usize) << 2), score);
    peak = max(peak, score);
  }
  return peak;
}

/** weights[j] = e^(weights[j] − peak), zero past the count; returns their sum, in lanes of four. */
function exponentials(weights: usize, count: i32, peak: f32): f32 {
  const lanes = i32x4(0, 1, 2, 3);
  let sum = f32x4.splat(0);
  for (let j: i32 = 0; j < count; j += 4) {
    const at = weights + ((j as usize) << 2);
    const live = i32x4.lt_s(i32x4.add(lanes, i32x4.splat(j)), i32x4.splat(count));
    const e = v128.and(exp4(f32x4.sub(v128.load(at), f32x4.splat(peak))), live);
    v128.store(at, e);
    sum = f32x4.add(sum, e);
  }
  return horizontalSum(sum);
}

/** out = out · fade + Σ_j weights[j] · v_j, j ascending. */
function addValues(
  values: usize,
  count: i32,
  dim: i32,
  weights: usize,
  fade: f32,
  out: usize,
): void {
  const dimBytes = (dim as usize) << 2;
  for (let i: usize = 0; i < dimBytes; i += 16) {
    let acc = f32x4.mul(v128.load(out + i), f32x4.splat(fade));
    let v = values + i;
    for (let j: usize = 0; j < (count as usize) << 2; j += 4) {
      acc = madd(v128.load32_splat(weights + j), v128.load(v), acc);
      v += dimBytes;
    }
    v128.store(out + i, acc);
  }
}
