// SWIGLU: out = silu(gate) · up, each {SLICES} slices of a projection's output, added ascending; out is a
// projection's input (pass.wgsl inputAt). A thread takes four columns of a row.
#include pass.wgsl
@group(0) @binding(2) var<storage, read> gate: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> up: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> output: array<InputQuad>;

// params: 0 width, 1 stride of gate and up, 2 out stride, 3 floats from slice to slice
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let column = 4u * id.x;
  let row = id.y;
  if (row >= passRows() || column >= param(0u)) { return; }
  let at = (row * param(1u) + column) / 4u;
  var g = gate[at];
  var u = up[at];
#repeat s SLICES
#if s > 0
  g += gate[at + {s}u * param(3u) / 4u];
  u += up[at + {s}u * param(3u) / 4u];
#end
#end
  output[inputAt(row, column, param(2u)) / 4u] = asInputs(g / (vec4<f32>(1.0) + exp(-g)) * u);
}
