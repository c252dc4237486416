// NORM: out = h · rsqrt(mean(h²) + eps) · weight, one workgroup a (span of {SPAN} columns, row), after add.wgsl
// has left the sums of h² of each span, which are added ascending. Out is a projection's input (pass.wgsl inputAt).
#include pass.wgsl
@group(0) @binding(2) var<storage, read> hidden: array<f32>;
@group(0) @binding(3) var<storage, read> weight: array<f32>;
@group(0) @binding(4) var<storage, read_write> output: array<Input>;
@group(0) @binding(5) var<storage, read> squares: array<f32>;

// params: 0 width, 1 hidden stride, 2 output stride, 3 eps, 4 draws
@compute @workgroup_size({SPAN})
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) thread: u32,
) {
  let draws = param(4u) != 0u;
  if (group.y >= select(passRows(), passDraws(), draws)) { return; }
  var row = group.y;
  if (draws) { row = drawRow(group.y); }
  let column = group.x * {SPAN}u + thread;
  if (column >= param(0u)) { return; }
  var sum = 0.0;
  for (var i = 0u; i < groups.x; i++) { sum += squares[group.y * groups.x + i]; }
  let scale = 1.0 / sqrt(sum / f32(param(0u)) + paramFloat(3u));
  let value = hidden[row * param(1u) + column] * scale * weight[column];
  output[inputAt(group.y, column, param(2u))] = asInput(value);
}
