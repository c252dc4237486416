// TAP: copies rows of the residual stream aside, with the {SLICES} slices of the update that norm.wgsl will add.
#include pass.wgsl
@group(0) @binding(2) var<storage, read> hidden: array<f32>;
@group(0) @binding(3) var<storage, read_write> output: array<f32>;
@group(0) @binding(4) var<storage, read> updates: array<f32>;

// params: 0 width, 1 hidden stride, 2 update stride, 3 floats from slice to slice
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.y >= passRows() || id.x >= param(0u)) { return; }
  var value = hidden[id.y * param(1u) + id.x];
#if SLICES
  let at = id.y * param(2u) + id.x;
  var update = updates[at];
#repeat s SLICES
#if s > 0
  update += updates[at + {s}u * param(3u)];
#end
#end
  value += update;
#end
  output[id.y * param(0u) + id.x] = value;
}
