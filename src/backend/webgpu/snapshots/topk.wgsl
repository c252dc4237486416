// TOPK: merges a draw's slices (topk_slice.wgsl), whose candidates stand in order: thread t holds the first of
// slice t that is not taken yet. One workgroup a draw; at most 256 slices.
// results[draw]: 1 where every logit is finite, 0, then (id, logit bits) of as many candidates as the draw asks;
// past the vocabulary's end they mean nothing. Exact: no arithmetic on logits.
// The pass that every kernel works on: what `pass.ts` writes. Words from `passWords[0]`:
// rows, draws, segments, then the offsets (in words) of the arrays below, then how attention and top-k are cut.
enable f16;
@group(0) @binding(0) var<uniform> params: array<vec4<u32>, 4>;
@group(0) @binding(1) var<storage, read> passWords: array<u32>;

fn param(index: u32) -> u32 { return params[index / 4u][index % 4u]; }
fn paramFloat(index: u32) -> f32 { return bitcast<f32>(param(index)); }
fn passRows() -> u32 { return passWords[0]; }
fn passDraws() -> u32 { return passWords[1]; }
fn rowId(row: u32) -> u32 { return passWords[passWords[3] + row]; }
fn rowPosition(row: u32) -> u32 { return passWords[passWords[4] + row]; }
fn rowSegment(row: u32) -> u32 { return passWords[passWords[5] + row]; }
fn drawRow(draw: u32) -> u32 { return passWords[passWords[6] + draw]; }
// Candidates that a draw takes from the device; 0: its whole row is read. Then the most of any draw.
fn drawTop(draw: u32) -> u32 { return passWords[passWords[6] + passDraws() + draw]; }
fn passTop() -> u32 { return passWords[12]; }
// Attention: first row and rows of a block; tiles of keys a workgroup; partial results a (row, head).
fn blockWord(block: u32, word: u32) -> u32 { return passWords[passWords[9] + block * 2u + word]; }
fn attentionSpan() -> u32 { return passWords[10]; }
fn attentionPartials() -> u32 { return passWords[11]; }
// Segment record: first row (of a keep's: the place of the window's first), rows, state slot, next slot, offset
// of its page table; the conv history that is read and the one that is written; 1 for a window, 2 for a tree.
fn segmentWord(segment: u32, word: u32) -> u32 { return passWords[passWords[7] + segment * 8u + word]; }
fn pageOf(segment: u32, position: u32) -> u32 {
  return passWords[segmentWord(segment, 4u) + position / 64u];
}
// Where a row's keys, values and features lie: at its position, unless its segment is a tree.
fn rowPlace(row: u32) -> u32 { return passWords[passWords[13] + row]; }
// The rows of a segment from its root to one of them, four bits each: of each row of a tree, or of a keep's windows.
fn pathOf(index: u32) -> vec2<u32> {
  let at = passWords[14] + 2u * index;
  return vec2<u32>(passWords[at], passWords[at + 1u]);
}
fn pathRow(path: vec2<u32>, depth: u32) -> u32 {
  return (select(path.x, path.y, depth > 7u) >> (depth % 8u * 4u)) & 15u;
}
// Of a pass with trees: a segment, rows, the first of them that another scan gives, the leaf whose path they are.
fn scanWord(scan: u32, word: u32) -> u32 { return passWords[passWords[15] + scan * 4u + word]; }
// Features lie in rings of `ring` places, one a slot.
fn featureRow(slot: u32, place: u32, ring: u32) -> u32 { return slot * ring + place % ring; }
// Angles of a row: cosines, then sines.
fn ropeValue(row: u32, index: u32) -> f32 {
  return bitcast<f32>(passWords[passWords[8] + row * 128u + index]);
}
// What a projection reads, and where column `column` of a row of `stride` floats stands in it: project.wgsl
// and tiles_common.wgsl say why. Four neighbours from a multiple of four on stay together.
alias Input = f16;
alias InputQuad = vec4<f16>;
fn inputAt(row: u32, column: u32, stride: u32) -> u32 {
  return row / 8u * 8u * stride + column / 64u * 512u + row % 8u * 64u + column % 64u;
}
// Beyond f16's range: infinite, so that the row's logits tell. WGSL lets the conversion stop at 65504.
fn asInput(value: f32) -> Input {
  let infinite = bitcast<vec2<f16>>((bitcast<u32>(value) & 0x80000000u) | 0x7c000000u).y;
  return select(f16(value), infinite, abs(value) > 65504.0);
}
fn asInputs(v: vec4<f32>) -> InputQuad {
  return vec4<f16>(asInput(v.x), asInput(v.y), asInput(v.z), asInput(v.w));
}
fn sigmoid(x: f32) -> f32 { return 1.0 / (1.0 + exp(-x)); }

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
