// ARGMAX: per draw the best (logit, lowest id among equals) and whether every logit is finite.
// results[draw] = (id, logit bits, 1 where all are finite, 0).
#include pass.wgsl
@group(0) @binding(2) var<storage, read> logits: array<f32>;
@group(0) @binding(3) var<storage, read_write> results: array<vec4<u32>>;

var<workgroup> bestLogit: array<f32, 256>;
var<workgroup> bestId: array<u32, 256>;
var<workgroup> finite: array<u32, 256>;

// params: 0 vocabulary, 1 stride
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let draw = group.x;
  if (draw >= passDraws()) { return; }
  let at = draw * param(1u);
  var logit = logits[at + min(thread, param(0u) - 1u)];
  var id = thread;
  var all = 1u;
  for (var i = thread; i < param(0u); i += 256u) {
    let value = logits[at + i];
    // The exponent's bits are all ones in infinities and NaN.
    if ((bitcast<u32>(value) & 0x7f800000u) == 0x7f800000u) { all = 0u; }
    if (value > logit) { logit = value; id = i; }
  }
  bestLogit[thread] = logit;
  bestId[thread] = id;
  finite[thread] = all;
  for (var half = 128u; half > 0u; half /= 2u) {
    workgroupBarrier();
    if (thread < half) {
      let other = thread + half;
      let better = bestLogit[other] > bestLogit[thread] ||
        (bestLogit[other] == bestLogit[thread] && bestId[other] < bestId[thread]);
      if (better) { bestLogit[thread] = bestLogit[other]; bestId[thread] = bestId[other]; }
      finite[thread] &= finite[other];
    }
  }
  workgroupBarrier();
  if (thread == 0u) {
    results[draw] = vec4<u32>(bestId[0], bitcast<u32>(bestLogit[0]), finite[0], 0u);
  }
}
