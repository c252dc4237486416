// ROPE: one workgroup a (row, query head or KV head). Queries: normed, rotated, written to q. Keys: normed,
// rotated, written to the page of their place, with their values, in the page's layout (attend.wgsl); with
// 16-bit KV both are rounded here, once. Called before attend in every pass. What the projections left are
// {SLICES} slices, added ascending.
// There are {QUERY_HEADS} query heads, each the first of {QUERY_VECTORS} vectors. A drafter's context has none, but the
// keys of several layers: KV heads of all are counted through, and layer l's lie l times a stride further on.
// Sum of squares: lane t takes dims t, t + 64, …; then a tree.
#if KV_BITS == 16
enable f16;
#end
#include pass.wgsl
@group(0) @binding(2) var<storage, read> queryGate: array<f32>;
@group(0) @binding(3) var<storage, read> key: array<f32>;
@group(0) @binding(4) var<storage, read> value: array<f32>;
@group(0) @binding(5) var<storage, read> norms: array<f32>;
@group(0) @binding(6) var<storage, read_write> query: array<f32>;
@group(0) @binding(7) var<storage, read_write> keys: array<f{KV_BITS}>;
@group(0) @binding(8) var<storage, read_write> values: array<f{KV_BITS}>;

var<workgroup> squares: array<f32, 64>;
var<workgroup> normed: array<f32, {HEAD_DIM}>;

// params: 0 queryGate stride, 1 key stride, 2 value stride, 3 q stride, 4 eps, 5 floats from slice to slice; from layer
// to layer 6 floats of keys and of values, 7 numbers of their pages
fn queryAt(at: u32) -> f32 {
  var sum = queryGate[at];
#repeat s SLICES
#if s > 0
  sum += queryGate[at + {s}u * param(5u)];
#end
#end
  return sum;
}
fn keyAt(at: u32) -> f32 {
  var sum = key[at];
#repeat s SLICES
#if s > 0
  sum += key[at + {s}u * param(5u)];
#end
#end
  return sum;
}
fn valueAt(at: u32) -> f32 {
  var sum = value[at];
#repeat s SLICES
#if s > 0
  sum += value[at + {s}u * param(5u)];
#end
#end
  return sum;
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let row = group.y;
  let head = group.x;
  if (row >= passRows()) { return; }
  let isQuery = head < {QUERY_HEADS}u;
  let layer = (head - {QUERY_HEADS}u) / {KV_HEADS}u;
  let kvHead = (head - {QUERY_HEADS}u) % {KV_HEADS}u;
  let keyColumn = layer * param(6u) + kvHead * {HEAD_DIM}u;
  var sum = 0.0;
  for (var i = thread; i < {HEAD_DIM}u; i += 64u) {
    var x: f32;
    if (isQuery) { x = queryAt(row * param(0u) + head * {QUERY_VECTORS*HEAD_DIM}u + i); }
    else { x = keyAt(row * param(1u) + keyColumn + i); }
    normed[i] = x;
    sum = fma(x, x, sum);
  }
  squares[thread] = sum;
  for (var half = 32u; half > 0u; half /= 2u) {
    workgroupBarrier();
    if (thread < half) { squares[thread] += squares[thread + half]; }
  }
  workgroupBarrier();
  let scale = 1.0 / sqrt(squares[0] / f32({HEAD_DIM}u) + paramFloat(4u));
  // The queries' norm is the first, where there are any.
#if QUERY_HEADS
  let normAt = select({HEAD_DIM}u, 0u, isQuery);
#else
  let normAt = layer * {HEAD_DIM}u;
#end
  for (var i = thread; i < {HEAD_DIM}u; i += 64u) { normed[i] = normed[i] * scale * norms[normAt + i]; }
  workgroupBarrier();
  let place = rowPlace(row);
  let inPage = place % {PAGE_ROWS}u;
  let page = layer * param(7u) + (pageOf(rowSegment(row), place) * {KV_HEADS}u + kvHead) * {PAGE_ROWS*HEAD_DIM}u;
  let half = {ROTARY_DIM}u / 2u;
  for (var i = thread; i < {HEAD_DIM}u; i += 64u) {
    var x = normed[i];
    if (i < half) {
      x = normed[i] * ropeValue(row, i) - normed[i + half] * ropeValue(row, half + i);
    } else if (i < {ROTARY_DIM}u) {
      x = normed[i] * ropeValue(row, i - half) + normed[i - half] * ropeValue(row, i);
    }
    if (isQuery) { query[row * param(3u) + head * {HEAD_DIM}u + i] = x; }
    else {
      keys[page + (i / 4u * {PAGE_ROWS}u + inPage) * 4u + i % 4u] = f{KV_BITS}(x);
      let v = valueAt(row * param(2u) + keyColumn + i);
      values[page + inPage * {HEAD_DIM}u + i] = f{KV_BITS}(v);
    }
  }
}
