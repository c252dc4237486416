// DYNAMIC_CONV: a drafter's convolution before a sublayer: out = tap 0 · the row + tap 1 · the row before it, which is
// zero for a segment's first. x and out are projections' inputs (pass.wgsl inputAt). A thread takes four columns.
#include pass.wgsl
@group(0) @binding(2) var<storage, read> x: array<InputQuad>;
@group(0) @binding(3) var<storage, read_write> output: array<InputQuad>;
@group(0) @binding(4) var<storage, read> kernels: array<f32>;
@group(0) @binding(5) var<storage, read> base: array<vec4<f32>>;
#include dynamic_taps

// params: 0 width, 1 stride of x and out
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let row = id.y;
  let quads = param(0u) / 4u;
  if (row >= passRows() || id.x >= quads) { return; }
  let at = inputAt(row, 4u * id.x, param(1u)) / 4u;
  var sum = vec4<f32>(x[at]) * tapOf(row, 0u, id.x, quads);
  if (row > segmentWord(rowSegment(row), 0u)) {
    let before = vec4<f32>(x[inputAt(row - 1u, 4u * id.x, param(1u)) / 4u]);
    sum += before * tapOf(row, 1u, id.x, quads);
  }
  output[at] = asInputs(sum);
}
