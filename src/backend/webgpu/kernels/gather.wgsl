// GATHER: the features of each row's place, from its slot's ring into a projection's input (pass.wgsl inputAt). A thread
// takes four columns.
#include pass.wgsl
@group(0) @binding(2) var<storage, read> features: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> output: array<InputQuad>;

// params: 0 quads a place, 1 places a slot, 2 out stride
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let row = id.y;
  if (row >= passRows() || id.x >= param(0u)) { return; }
  let slot = segmentWord(rowSegment(row), 2u);
  let value = features[featureRow(slot, rowPlace(row), param(1u)) * param(0u) + id.x];
  output[inputAt(row, 4u * id.x, param(2u)) / 4u] = asInputs(value);
}
