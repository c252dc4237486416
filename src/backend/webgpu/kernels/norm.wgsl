// NORM: out = x · rsqrt(mean(x²) + eps) · weight, one workgroup a row; out is a projection's input and so
// permuted. The sum of squares: thread t takes columns t, t + 256, …; then the threads in order of a tree.
#include pass.wgsl
@group(0) @binding(2) var<storage, read> input: array<f32>;
@group(0) @binding(3) var<storage, read> weight: array<f32>;
@group(0) @binding(4) var<storage, read_write> output: array<f32>;

var<workgroup> squares: array<f32, 256>;

// params: 0 width, 1 input stride, 2 output stride, 3 eps, 4 draws
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let draws = param(4u) != 0u;
  let row = group.x;
  if (row >= select(passRows(), passDraws(), draws)) { return; }
  var source = row;
  if (draws) { source = drawRow(row); }
  let width = param(0u);
  let begin = source * param(1u);
  var sum = 0.0;
  for (var i = thread; i < width; i += 256u) { sum = fma(input[begin + i], input[begin + i], sum); }
  squares[thread] = sum;
  for (var half = 128u; half > 0u; half /= 2u) {
    workgroupBarrier();
    if (thread < half) { squares[thread] += squares[thread + half]; }
  }
  workgroupBarrier();
  let scale = 1.0 / sqrt(squares[0] / f32(width) + paramFloat(3u));
  for (var i = thread; i < width; i += 256u) {
    output[row * param(2u) + permuted(i)] = input[begin + i] * scale * weight[i];
  }
}
