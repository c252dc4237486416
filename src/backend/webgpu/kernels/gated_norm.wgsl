// GATED_NORM: per row and value head y = RMSNorm(o) · weight · silu(z), norm first; y is a projection's input
// and so permuted. Sum of squares: lane t takes columns t, t + 64, …; then the lanes by a tree.
#include pass.wgsl
@group(0) @binding(2) var<storage, read> delta: array<f32>;
@group(0) @binding(3) var<storage, read> z: array<f32>;
@group(0) @binding(4) var<storage, read> weight: array<f32>;
@group(0) @binding(5) var<storage, read_write> output: array<f32>;

var<workgroup> squares: array<f32, 64>;

// params: 0 delta stride, 1 z stride, 2 out stride, 3 eps
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let row = group.y;
  let head = group.x;
  if (row >= passRows()) { return; }
  let begin = row * param(0u) + head * {VALUE_DIM}u;
  var sum = 0.0;
  for (var i = thread; i < {VALUE_DIM}u; i += 64u) { sum = fma(delta[begin + i], delta[begin + i], sum); }
  squares[thread] = sum;
  for (var half = 32u; half > 0u; half /= 2u) {
    workgroupBarrier();
    if (thread < half) { squares[thread] += squares[thread + half]; }
  }
  workgroupBarrier();
  let scale = 1.0 / sqrt(squares[0] / f32({VALUE_DIM}u) + paramFloat(3u));
  for (var i = thread; i < {VALUE_DIM}u; i += 64u) {
    let column = head * {VALUE_DIM}u + i;
    let value = delta[begin + i] * scale * weight[i];
    output[row * param(2u) + permuted(column)] = value * silu(z[row * param(1u) + column]);
  }
}
