// DRAFT_MERGE: combines what draft_attend.wgsl left of each (row, head), parts ascending, into a projection's input. One
// workgroup a (row, head), a thread four dims.
#include pass.wgsl
#include draft_common
@group(0) @binding(2) var<storage, read> outs: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> stats: array<vec2<f32>>;
@group(0) @binding(4) var<storage, read_write> attended: array<InputQuad>;

// params: 0 window, 1 causal, 2 attended stride
@compute @workgroup_size({VECS})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) dim: u32) {
  let row = group.y;
  let head = group.x;
  let seen = keysOf(rowSegment(row), param(0u));
  let parts = (seen.tiles + seen.span - 1u) / seen.span;
  let first = (row * {HEADS}u + head) * {SPLITS}u;
  var top = stats[first].x;
  for (var i = 1u; i < parts; i++) { top = max(top, stats[first + i].x); }
  var out = vec4<f32>(0.0);
  var sum = 0.0;
  for (var i = 0u; i < parts; i++) {
    let weight = exp(stats[first + i].x - top);
    out = fma(outs[(first + i) * {VECS}u + dim], vec4<f32>(weight), out);
    sum = fma(stats[first + i].y, weight, sum);
  }
  attended[inputAt(row, head * {HEAD_DIM}u + 4u * dim, param(2u)) / 4u] = asInputs(out / sum);
}
