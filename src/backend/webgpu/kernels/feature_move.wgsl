// FEATURE_MOVE: brings the features of a kept path to the places of a chain, in a keep where a path isn't its window's
// first rows. One workgroup a (64 quads, window). Rows ascend along a path, so that none is overwritten before it
// is moved, and a thread has its own columns of all.
#include pass.wgsl
@group(0) @binding(2) var<storage, read_write> features: array<vec4<f32>>;

// params: 0 quads a place, 1 places a slot
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let window = id.y;
  if (id.x >= param(0u)) { return; }
  let path = pathOf(window);
  let start = segmentWord(window, 0u);
  let slot = segmentWord(window, 2u);
  for (var depth = 0u; depth < segmentWord(window, 1u); depth++) {
    let row = pathRow(path, depth);
    if (row == depth) { continue; }
    let old = featureRow(slot, start + row, param(1u)) * param(0u);
    let next = featureRow(slot, start + depth, param(1u)) * param(0u);
    features[next + id.x] = features[old + id.x];
  }
}
