// TAP: copies rows of the residual stream aside.
#include pass.wgsl
@group(0) @binding(2) var<storage, read> input: array<f32>;
@group(0) @binding(3) var<storage, read_write> output: array<f32>;

// params: 0 width, 1 input stride
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.y >= passRows() || id.x >= param(0u)) { return; }
  output[id.y * param(0u) + id.x] = input[id.y * param(1u) + id.x];
}
