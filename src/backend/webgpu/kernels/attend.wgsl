// ATTEND: out = softmax(q·K / √dim)·V ⊙ sigmoid(gate), causal; one workgroup a (row, head); out is a
// projection's input and so permuted. Keys are walked by absolute position in tiles of {PAGE_ROWS} with a
// running maximum and sum, so a row's bits depend on its position alone. A score is one fma chain over vec4
// of the dim; a tile's weights add up in order of their keys.
#include pass.wgsl
@group(0) @binding(2) var<storage, read> query: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> queryGate: array<f32>;
@group(0) @binding(4) var<storage, read> keys: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read> values: array<f32>;
@group(0) @binding(6) var<storage, read_write> output: array<f32>;

var<workgroup> weights: array<f32, {PAGE_ROWS}>;

// params: 0 q stride (vec4), 1 queryGate stride, 2 out stride
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let row = group.y;
  let head = group.x;
  if (row >= passRows()) { return; }
  let kvHead = head / ({HEADS}u / {KV_HEADS}u);
  let count = rowPosition(row) + 1u;
  let segment = rowSegment(row);
  let q = row * param(0u) + head * {HEAD_DIM}u / 4u;
#repeat d DIMS
  var out{d} = 0.0;
#end
  var peak = 0.0;
  var total = 0.0;
  for (var first = 0u; first < count; first += {PAGE_ROWS}u) {
    let live = min({PAGE_ROWS}u, count - first);
    let page = (pageOf(segment, first) * {KV_HEADS}u + kvHead) * {PAGE_ROWS}u * {HEAD_DIM}u;
    var score = 0.0;
    if (thread < live) {
      var dots = vec4<f32>(0.0);
      let k = (page + thread * {HEAD_DIM}u) / 4u;
      for (var i = 0u; i < {HEAD_DIM}u / 4u; i++) { dots = fma(query[q + i], keys[k + i], dots); }
      score = ((dots.x + dots.y) + (dots.z + dots.w)) / sqrt(f32({HEAD_DIM}u));
    }
    weights[thread] = score;
    workgroupBarrier();
    var top = weights[0];
    for (var j = 1u; j < live; j++) { top = max(top, weights[j]); }
    if (first > 0u) { top = max(top, peak); }
    var fade = 0.0;
    if (first > 0u) { fade = exp(peak - top); }
    workgroupBarrier();
    weights[thread] = exp(score - top);
    workgroupBarrier();
    var sum = 0.0;
    for (var j = 0u; j < live; j++) { sum += weights[j]; }
    total = fma(total, fade, sum);
#repeat d DIMS
    if ({d}u * 64u + thread < {HEAD_DIM}u) {
      var acc = out{d} * fade;
      for (var j = 0u; j < live; j++) {
        acc = fma(weights[j], values[page + j * {HEAD_DIM}u + {d}u * 64u + thread], acc);
      }
      out{d} = acc;
    }
#end
    peak = top;
    workgroupBarrier();
  }
#repeat d DIMS
  if ({d}u * 64u + thread < {HEAD_DIM}u) {
    let i = {d}u * 64u + thread;
    let gate = sigmoid(queryGate[row * param(1u) + (2u * head + 1u) * {HEAD_DIM}u + i]);
    output[row * param(2u) + permuted(head * {HEAD_DIM}u + i)] = out{d} / total * gate;
  }
#end
}
