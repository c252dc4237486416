// TOPK: merges a draw's slices (topk_slice.wgsl), whose candidates stand in order: thread t holds the first of
// slice t that is not taken yet. One workgroup a draw; at most 256 slices.
// results[draw]: 1 where every logit is finite, 0, then (id, logit bits) of as many candidates as the draw asks;
// past the vocabulary's end they mean nothing. Exact: no arithmetic on logits.
#include pass.wgsl
#include winner
@group(0) @binding(2) var<storage, read> logits: array<u32>;
@group(0) @binding(3) var<storage, read> pairs: array<vec2<u32>>;
@group(0) @binding(4) var<storage, read_write> results: array<vec2<u32>>;

// params: 0 vocabulary, 1 stride, 2 slices
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let draw = group.x;
  let wanted = drawTop(draw);
  if (wanted == 0u) { return; }
  let none = vec2<u32>(0u, 0xffffffffu);
  let record = (draw * param(2u) + thread) * (passTop() + 1u);
  let last = select(0u, wanted, thread < param(2u));
  var flag = 0u;
  if (last > 0u) { flag = pairs[record].x; }
  let broken = winner(thread, vec2<u32>(flag, 0u)).x;
  var at = 1u;
  var own = none;
  if (at <= last) { own = pairs[record + at]; }
  let out = draw * (passTop() + 1u);
  if (thread == 0u) { results[out] = vec2<u32>(1u - broken, 0u); }
  for (var n = 0u; n < wanted; n++) {
    let best = winner(thread, own);
    if (thread == 0u) {
      let logit = logits[draw * param(1u) + min(best.y, param(0u) - 1u)];
      results[out + 1u + n] = vec2<u32>(best.y, logit);
    }
    if (own.y == best.y) {
      at++;
      own = none;
      if (at <= last) { own = pairs[record + at]; }
    }
  }
}
