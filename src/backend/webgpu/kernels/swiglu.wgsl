// SWIGLU: out = silu(gate) · up; out is a projection's input and so permuted.
#include pass.wgsl
@group(0) @binding(2) var<storage, read> gate: array<f32>;
@group(0) @binding(3) var<storage, read> up: array<f32>;
@group(0) @binding(4) var<storage, read_write> output: array<f32>;

// params: 0 width, 1 gate stride, 2 up stride, 3 out stride
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let column = id.x;
  let row = id.y;
  if (row >= passRows() || column >= param(0u)) { return; }
  let value = silu(gate[row * param(1u) + column]) * up[row * param(2u) + column];
  output[row * param(3u) + permuted(column)] = value;
}
