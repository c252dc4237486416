// TAP: copies rows of the residual stream aside, with the {SLICES} slices of the update that norm.wgsl will add:
// into rows of their own, or (FEATURE) as a drafter's feature, into the slot's places. A thread takes four columns.
#include pass.wgsl
@group(0) @binding(2) var<storage, read> hidden: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> output: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> updates: array<vec4<f32>>;

// params: 0 width, 1 hidden stride, 2 update stride, 3 floats from slice to slice; 4 places a slot, 5 quads a
// place, 6 the feature's first
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let row = id.y;
  let quads = param(0u) / 4u;
  if (row >= passRows() || id.x >= quads) { return; }
  var value = hidden[row * param(1u) / 4u + id.x];
#if SLICES
  let at = row * param(2u) / 4u + id.x;
  var update = updates[at];
#repeat s SLICES
#if s > 0
  update += updates[at + {s}u * param(3u) / 4u];
#end
#end
  value += update;
#end
#if FEATURE
  let slot = segmentWord(rowSegment(row), 3u);
  output[featureRow(slot, rowPlace(row), param(4u)) * param(5u) + param(6u) + id.x] = value;
#else
  output[row * quads + id.x] = value;
#end
}
