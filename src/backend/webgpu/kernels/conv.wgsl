// CONV: c[t, ch] = silu(Σ_j w[j, ch] · m[t − taps + 1 + j, ch]), taps in order; q and k heads divided by their
// length (q also by √dk); gates g = exp(−exp(A_log) · softplus(a + dt)), β = sigmoid(b).
// One workgroup a (row, head of q, k or v). Rows before the segment come from the slot's history.
// A head's sum of squares: lane t takes channels t, t + 64, …; then the lanes by a tree.
#include pass.wgsl
@group(0) @binding(2) var<storage, read> qkv: array<f32>;
@group(0) @binding(3) var<storage, read> weights: array<f32>;
@group(0) @binding(4) var<storage, read> history: array<f32>;
@group(0) @binding(5) var<storage, read_write> output: array<f32>;
@group(0) @binding(6) var<storage, read> betas: array<f32>;
@group(0) @binding(7) var<storage, read> decays: array<f32>;
@group(0) @binding(8) var<storage, read> rates: array<f32>;
@group(0) @binding(9) var<storage, read_write> gates: array<f32>;

var<workgroup> squares: array<f32, 64>;

// params: 0 qkv stride, 1 out stride, 2 b stride, 3 a stride, 4 gates stride, 5 first float of the layer's
// histories
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let row = group.y;
  let head = group.x;
  if (row >= passRows()) { return; }
  let isValue = head >= 2u * {KEY_HEADS}u;
  let width = select({KEY_DIM}u, {VALUE_DIM}u, isValue);
  var channel = head * {KEY_DIM}u;
  if (isValue) { channel = 2u * {KEY_HEADS}u * {KEY_DIM}u + (head - 2u * {KEY_HEADS}u) * {VALUE_DIM}u; }
  let segment = rowSegment(row);
  let local = row - segmentWord(segment, 0u);
  let slot = param(5u) + segmentWord(segment, 2u) * ({TAPS}u - 1u) * {CHANNELS}u;
  let out = row * param(1u) + channel;
  var sum = 0.0;
  for (var i = thread; i < width; i += 64u) {
    var acc = 0.0;
    for (var j = 0u; j < {TAPS}u; j++) {
      let back = {TAPS}u - 1u - j;
      var value: f32;
      if (local >= back) { value = qkv[(row - back) * param(0u) + channel + i]; }
      else { value = history[slot + (local + j) * {CHANNELS}u + channel + i]; }
      acc = fma(weights[j * {CHANNELS}u + channel + i], value, acc);
    }
    let c = silu(acc);
    sum = fma(c, c, sum);
    output[out + i] = c;
  }
  if (isValue) {
    if (thread == 0u) {
      let v = head - 2u * {KEY_HEADS}u;
      let x = decays[row * param(3u) + v] + rates[{VALUE_HEADS}u + v];
      let softplus = max(x, 0.0) + log(1.0 + exp(-abs(x)));
      gates[row * param(4u) + 2u * v] = exp(rates[v] * softplus);
      gates[row * param(4u) + 2u * v + 1u] = sigmoid(betas[row * param(2u) + v]);
    }
    return;
  }
  squares[thread] = sum;
  for (var half = 32u; half > 0u; half /= 2u) {
    workgroupBarrier();
    if (thread < half) { squares[thread] += squares[thread + half]; }
  }
  workgroupBarrier();
  var scale = 1.0 / sqrt(squares[0] + 1e-6);
  if (head < {KEY_HEADS}u) { scale /= sqrt(f32({KEY_DIM}u)); }
  for (var i = thread; i < width; i += 64u) { output[out + i] *= scale; }
}
