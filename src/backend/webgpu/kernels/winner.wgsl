// Included by the top-k kernels: the order of logits, and the first of 256 candidates in that order.
var<workgroup> threadBest: array<vec2<u32>, 256>;
var<workgroup> groupBest: array<vec2<u32>, 16>;

// Ascends with the logit; both zeros are equal. 0 is below every finite logit and means none. Words, not
// floats, are compared: a device may flush denormals.
fn orderKey(logit: u32) -> u32 {
  if (logit == 0x80000000u) { return 0x80000000u; }
  return select(logit | 0x80000000u, ~logit, (logit & 0x80000000u) != 0u);
}
fn isFinite(logit: u32) -> bool { return (logit & 0x7f800000u) != 0x7f800000u; }

// Of (key, id): the larger key, the lower id where keys are equal.
fn first(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return select(a, b, b.x > a.x || (b.x == a.x && b.y < a.y));
}
// For all 256 threads at once; each gets the winner.
fn winner(thread: u32, own: vec2<u32>) -> vec2<u32> {
  threadBest[thread] = own;
  workgroupBarrier();
  if (thread < 16u) {
    var best = threadBest[thread];
    for (var i = 16u; i < 256u; i += 16u) { best = first(best, threadBest[i + thread]); }
    groupBest[thread] = best;
  }
  workgroupBarrier();
  var best = groupBest[0];
  for (var i = 1u; i < 16u; i++) { best = first(best, groupBest[i]); }
  return best;
}
