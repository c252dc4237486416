// Full attention between its projections: head norms, rotation and the KV write, then the softmax. The
// target's, and a drafter's.
import {
  ATTENTION_HEADS,
  ATTENTION_HEAD_DIM,
  ATTENTION_KV_HEADS,
  ATTENTION_PAGE_BYTES,
  ATTENTION_QUERY_STEP,
  ATTENTION_ROTARY_DIM,
  ATTENTION_WHOLE,
  ATTENTION_WINDOW,
  PAGE_ROWS,
  PASS_ROPE,
  SEGMENT_FIRST_ROW,
  SEGMENT_PAGES,
  SEGMENT_ROWS,
  SEGMENT_START,
} from "../layout";
import { exp1, exp4, horizontalSum, horizontalSums, madd, sigmoid4 } from "./math";
import { rmsNorm } from "./norm";
import { pathOf, placeOf, positionOf, rowOnPath, segmentOf } from "./segment";
import { nextUnit, share } from "./sync";

/** Bytes from the start of a layer's keys, or values, to those of a place and head. */
@inline
export function kvAt(record: usize, segment: usize, place: i32, kvHead: i32): usize {
  const pages = load<u32>(segment, SEGMENT_PAGES) as usize;
  const page = load<i32>(pages + ((place / PAGE_ROWS) << 2)) as usize;
  const row = (kvHead * PAGE_ROWS + (place % PAGE_ROWS)) * load<i32>(record, ATTENTION_HEAD_DIM);
  return page * (load<u32>(record, ATTENTION_PAGE_BYTES) as usize) + ((row as usize) << 2);
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
 * their place, with their values. Unit = (row, query head or KV head). Context has no queries.
 * Operands: queries, stride, k, v, kv stride, q norm, k norm, eps, q out, q stride, keys, values,
 * attention record. A page of one layer is [kv head, 64 rows, head dim] f32.
 */
export function rope(op: usize, pass: usize, rows: i32): void {
  const record = load<u32>(op, 56) as usize;
  const heads = load<i32>(record, ATTENTION_HEADS);
  const dim = load<i32>(record, ATTENTION_HEAD_DIM);
  const half = load<i32>(record, ATTENTION_ROTARY_DIM) >> 1;
  const queryBytes = ((dim * load<i32>(record, ATTENTION_QUERY_STEP)) as usize) << 2;
  const dimBytes = (dim as usize) << 2;
  const eps = load<f32>(op, 36);
  const units = heads + load<i32>(record, ATTENTION_KV_HEADS);
  share(rows * units);
  for (let unit = nextUnit(); unit >= 0; unit = nextUnit()) {
    const row = (unit / units) as usize;
    const head = unit % units;
    const table = (load<u32>(pass, PASS_ROPE) as usize) + row * ((half as usize) << 3);
    if (head < heads) {
      const from = (load<u32>(op, 8) as usize) + row * (load<u32>(op, 12) as usize);
      const to = (load<u32>(op, 40) as usize) + row * (load<u32>(op, 44) as usize);
      const out = to + (head as usize) * dimBytes;
      rmsNorm(from + (head as usize) * queryBytes, dim, eps, load<u32>(op, 28) as usize, out);
      rotate(out, half, table);
    } else {
      const segment = segmentOf(pass, row as i32);
      const at = kvAt(record, segment, placeOf(segment, row as i32), head - heads);
      const source = row * (load<u32>(op, 24) as usize) + ((head - heads) as usize) * dimBytes;
      const key = (load<u32>(op, 48) as usize) + at;
      rmsNorm((load<u32>(op, 16) as usize) + source, dim, eps, load<u32>(op, 32) as usize, key);
      rotate(key, half, table);
      const value = (load<u32>(op, 52) as usize) + at;
      memory.copy(value, (load<u32>(op, 20) as usize) + source, dimBytes);
    }
  }
}

/**
 * ATTEND. out = softmax(q·K / √dim)·V, ⊙ sigmoid(gate) where there are gates. A row sees the keys before
 * its segment, or as many of them as a window allows, and of its segment itself and its ancestors, or all.
 * Keys are walked by absolute position in tiles of 64 with a running maximum and sum, so a row's bits depend
 * on its position alone. Where a path of a tree has gaps, a tile is walked in runs of neighbours; a chain's
 * tile is one run. Unit = (row, head).
 * Operands: q, stride, queries with gates or 0, stride, keys, values, out, out stride, attention record.
 */
export function attend(op: usize, pass: usize, rows: i32, scratch: usize): void {
  const record = load<u32>(op, 40) as usize;
  const heads = load<i32>(record, ATTENTION_HEADS);
  const dimBytes = (load<i32>(record, ATTENTION_HEAD_DIM) as usize) << 2;
  share(rows * heads);
  for (let unit = nextUnit(); unit >= 0; unit = nextUnit()) {
    const row = (unit / heads) as usize;
    const head = unit % heads;
    const q = (load<u32>(op, 8) as usize) + row * (load<u32>(op, 12) as usize);
    const out = (load<u32>(op, 32) as usize) + row * (load<u32>(op, 36) as usize);
    const outHead = out + (head as usize) * dimBytes;
    attendHead(op, pass, record, row as i32, head, q + (head as usize) * dimBytes, outHead, scratch);
    const queries = load<u32>(op, 16) as usize;
    if (queries) {
      const gates = queries + row * (load<u32>(op, 20) as usize);
      applyGate(outHead, gates + ((head as usize) * 2 + 1) * dimBytes, dimBytes);
    }
  }
}

function attendHead(
  op: usize,
  pass: usize,
  record: usize,
  row: i32,
  head: i32,
  q: usize,
  out: usize,
  weights: usize,
): void {
  const dim = load<i32>(record, ATTENTION_HEAD_DIM);
  const dimBytes = (dim as usize) << 2;
  const kvHead = head / (load<i32>(record, ATTENTION_HEADS) / load<i32>(record, ATTENTION_KV_HEADS));
  const keys = load<u32>(op, 24) as usize;
  const values = load<u32>(op, 28) as usize;
  const segment = segmentOf(pass, row);
  const start = load<i32>(segment, SEGMENT_START);
  const position = positionOf(pass, row);
  const path = pathOf(segment, row - load<i32>(segment, SEGMENT_FIRST_ROW));
  const window = load<i32>(record, ATTENTION_WINDOW);
  const begin = window ? min(start, max(0, position + 1 - window)) : 0;
  const whole = load<i32>(record, ATTENTION_WHOLE) != 0;
  const end = whole ? start + load<i32>(segment, SEGMENT_ROWS) : position + 1;
  const scale: f32 = 1 / sqrt<f32>(dim as f32);
  let peak: f32 = -Infinity;
  let total: f32 = 0;
  memory.fill(out, 0, dimBytes);
  for (let first = begin; first < end; ) {
    const last = min(end, (first / PAGE_ROWS + 1) * PAGE_ROWS);
    let tilePeak: f32 = -Infinity;
    for (let key = first; key < last; ) {
      const count = runLength(path, start, key, last);
      const at = kvAt(record, segment, placeOnPath(path, start, key), kvHead);
      const to = weights + (((key - first) as usize) << 2);
      tilePeak = max(tilePeak, scores(keys + at, count, q, dim, scale, to));
      key += count;
    }
    const newPeak = max(peak, tilePeak);
    let fade: f32 = first == begin ? 0 : exp1(peak - newPeak);
    total = total * fade + exponentials(weights, last - first, newPeak);
    for (let key = first; key < last; ) {
      const count = runLength(path, start, key, last);
      const at = kvAt(record, segment, placeOnPath(path, start, key), kvHead);
      addValues(values + at, count, dim, weights + (((key - first) as usize) << 2), fade, out);
      fade = 1;
      key += count;
    }
    peak = newPeak;
    first = last;
  }
  const inverse = f32x4.splat(1 / total);
  for (let i: usize = 0; i < dimBytes; i += 16) {
    v128.store(out + i, f32x4.mul(v128.load(out + i), inverse));
  }
}

/** Where the key of a position lies for a row of this path. */
@inline
function placeOnPath(path: usize, start: i32, position: i32): i32 {
  return path && position >= start ? start + rowOnPath(path, position - start) : position;
}

/** How many keys from this position on, before `last`, lie side by side in one page. */
function runLength(path: usize, start: i32, position: i32, last: i32): i32 {
  if (!path) return last - position;
  if (position < start) return min(start, last) - position;
  const place = placeOnPath(path, start, position);
  const room = min(last - position, PAGE_ROWS - (place % PAGE_ROWS));
  let count: i32 = 1;
  while (count < room && placeOnPath(path, start, position + count) == place + count) count++;
  return count;
}

/** out ⊙ sigmoid(gate). */
function applyGate(out: usize, gate: usize, bytes: usize): void {
  for (let i: usize = 0; i < bytes; i += 16) {
    v128.store(out + i, f32x4.mul(v128.load(out + i), sigmoid4(v128.load(gate + i))));
  }
}

/**
 * weights[j] = scale · q·k_j for the tile's keys; returns the largest. One four-lane chain a key, eight
 * keys at a time: the last key fills up, and up to seven weights behind the count are written too.
 */
function scores(key: usize, count: i32, q: usize, dim: i32, scale: f32, weights: usize): f32 {
  const dimBytes = (dim as usize) << 2;
  const last = key + ((count - 1) as usize) * dimBytes;
  let peak = f32x4.splat(-Infinity);
  for (let j: i32 = 0; j < count; j += 8) {
    const k0 = key + (j as usize) * dimBytes;
    const k1 = min(k0 + dimBytes, last);
    const k2 = min(k1 + dimBytes, last);
    const k3 = min(k2 + dimBytes, last);
    const k4 = min(k3 + dimBytes, last);
    const k5 = min(k4 + dimBytes, last);
    const k6 = min(k5 + dimBytes, last);
    const k7 = min(k6 + dimBytes, last);
    let d0 = f32x4.splat(0);
    let d1 = d0;
    let d2 = d0;
    let d3 = d0;
    let d4 = d0;
    let d5 = d0;
    let d6 = d0;
    let d7 = d0;
    for (let i: usize = 0; i < dimBytes; i += 16) {
      const x = v128.load(q + i);
      d0 = madd(x, v128.load(k0 + i), d0);
      d1 = madd(x, v128.load(k1 + i), d1);
      d2 = madd(x, v128.load(k2 + i), d2);
      d3 = madd(x, v128.load(k3 + i), d3);
      d4 = madd(x, v128.load(k4 + i), d4);
      d5 = madd(x, v128.load(k5 + i), d5);
      d6 = madd(x, v128.load(k6 + i), d6);
      d7 = madd(x, v128.load(k7 + i), d7);
    }
    const at = weights + ((j as usize) << 2);
    const four = f32x4.mul(horizontalSums(d0, d1, d2, d3), f32x4.splat(scale));
    const next = f32x4.mul(horizontalSums(d4, d5, d6, d7), f32x4.splat(scale));
    v128.store(at, four);
    v128.store(at, next, 16);
    peak = f32x4.max(peak, f32x4.max(four, next));
  }
  return max(
    max(f32x4.extract_lane(peak, 0), f32x4.extract_lane(peak, 1)),
    max(f32x4.extract_lane(peak, 2), f32x4.extract_lane(peak, 3)),
  );
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
  const end = weights + ((count as usize) << 2);
  const f = f32x4.splat(fade);
  let i: usize = 0;
  for (; i + 128 <= dimBytes; i += 128) {
    const o = out + i;
    let a0 = f32x4.mul(v128.load(o), f);
    let a1 = f32x4.mul(v128.load(o, 16), f);
    let a2 = f32x4.mul(v128.load(o, 32), f);
    let a3 = f32x4.mul(v128.load(o, 48), f);
    let a4 = f32x4.mul(v128.load(o, 64), f);
    let a5 = f32x4.mul(v128.load(o, 80), f);
    let a6 = f32x4.mul(v128.load(o, 96), f);
    let a7 = f32x4.mul(v128.load(o, 112), f);
    let v = values + i;
    for (let j = weights; j < end; j += 4) {
      const w = v128.load32_splat(j);
      a0 = madd(w, v128.load(v), a0);
      a1 = madd(w, v128.load(v, 16), a1);
      a2 = madd(w, v128.load(v, 32), a2);
      a3 = madd(w, v128.load(v, 48), a3);
      a4 = madd(w, v128.load(v, 64), a4);
      a5 = madd(w, v128.load(v, 80), a5);
      a6 = madd(w, v128.load(v, 96), a6);
      a7 = madd(w, v128.load(v, 112), a7);
      v += dimBytes;
    }
    v128.store(o, a0);
    v128.store(o, a1, 16);
    v128.store(o, a2, 32);
    v128.store(o, a3, 48);
    v128.store(o, a4, 64);
    v128.store(o, a5, 80);
    v128.store(o, a6, 96);
    v128.store(o, a7, 112);
  }
  for (; i < dimBytes; i += 16) {
    let a = f32x4.mul(v128.load(out + i), f);
    let v = values + i;
    for (let j = weights; j < end; j += 4) {
      a = madd(v128.load32_splat(j), v128.load(v), a);
      v += dimBytes;
    }
    v128.store(out + i, a);
  }
}
