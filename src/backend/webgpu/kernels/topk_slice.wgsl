// TOPK_SLICE: per draw and slice of {ITEMS} × 256 logits, its first candidates by (logit descending, id ascending),
// as many as the draw asks. topk.wgsl merges the slices. One workgroup a (slice, draw).
// Per (draw, slice): (1 where a logit is not finite, 0), then pairs of (order key, id), key 0 past the last.
// Exact: no arithmetic on logits.
#include pass.wgsl
#include winner
@group(0) @binding(2) var<storage, read> logits: array<u32>;
@group(0) @binding(3) var<storage, read_write> pairs: array<vec2<u32>>;

// params: 0 vocabulary, 1 stride, 2 slices
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let slice = group.x;
  let draw = group.y;
  let wanted = drawTop(draw);
  if (wanted == 0u) { return; }
  var broken = 0u;
#repeat i ITEMS
  let id{i} = slice * {ITEMS}u * 256u + {i}u * 256u + thread;
  var key{i} = 0u;
  if (id{i} < param(0u)) {
    let logit = logits[draw * param(1u) + id{i}];
    key{i} = orderKey(logit);
    if (!isFinite(logit)) { broken = 1u; }
  }
#end
  let record = (draw * param(2u) + slice) * (passTop() + 1u);
  let flag = winner(thread, vec2<u32>(broken, 0u)).x;
  if (thread == 0u) { pairs[record] = vec2<u32>(flag, 0u); }
  for (var n = 0u; n < wanted; n++) {
    var own = vec2<u32>(0u, 0xffffffffu);
#repeat i ITEMS
    if (key{i} > own.x) { own = vec2<u32>(key{i}, id{i}); }
#end
    let best = winner(thread, own);
    if (thread == 0u) { pairs[record + 1u + n] = best; }
#repeat i ITEMS
    if (id{i} == best.y) { key{i} = 0u; }
#end
  }
}
