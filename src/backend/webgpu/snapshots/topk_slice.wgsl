// TOPK_SLICE: per draw and slice of 16 × 256 logits, its first candidates by (logit descending, id ascending),
// as many as the draw asks. topk.wgsl merges the slices. One workgroup a (slice, draw).
// Per (draw, slice): (1 where a logit is not finite, 0), then pairs of (order key, id), key 0 past the last.
// Exact: no arithmetic on logits.
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
@group(0) @binding(3) var<storage, read_write> pairs: array<vec2<u32>>;

// params: 0 vocabulary, 1 stride, 2 slices
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let slice = group.x;
  let draw = group.y;
  let wanted = drawTop(draw);
  if (wanted == 0u) { return; }
  var broken = 0u;
  let id0 = slice * 16u * 256u + 0u * 256u + thread;
  var key0 = 0u;
  if (id0 < param(0u)) {
    let logit = logits[draw * param(1u) + id0];
    key0 = orderKey(logit);
    if (!isFinite(logit)) { broken = 1u; }
  }
  let id1 = slice * 16u * 256u + 1u * 256u + thread;
  var key1 = 0u;
  if (id1 < param(0u)) {
    let logit = logits[draw * param(1u) + id1];
    key1 = orderKey(logit);
    if (!isFinite(logit)) { broken = 1u; }
  }
  let id2 = slice * 16u * 256u + 2u * 256u + thread;
  var key2 = 0u;
  if (id2 < param(0u)) {
    let logit = logits[draw * param(1u) + id2];
    key2 = orderKey(logit);
    if (!isFinite(logit)) { broken = 1u; }
  }
  let id3 = slice * 16u * 256u + 3u * 256u + thread;
  var key3 = 0u;
  if (id3 < param(0u)) {
    let logit = logits[draw * param(1u) + id3];
    key3 = orderKey(logit);
    if (!isFinite(logit)) { broken = 1u; }
  }
  let id4 = slice * 16u * 256u + 4u * 256u + thread;
  var key4 = 0u;
  if (id4 < param(0u)) {
    let logit = logits[draw * param(1u) + id4];
    key4 = orderKey(logit);
    if (!isFinite(logit)) { broken = 1u; }
  }
  let id5 = slice * 16u * 256u + 5u * 256u + thread;
  var key5 = 0u;
  if (id5 < param(0u)) {
    let logit = logits[draw * param(1u) + id5];
    key5 = orderKey(logit);
    if (!isFinite(logit)) { broken = 1u; }
  }
  let id6 = slice * 16u * 256u + 6u * 256u + thread;
  var key6 = 0u;
  if (id6 < param(0u)) {
    let logit = logits[draw * param(1u) + id6];
    key6 = orderKey(logit);
    if (!isFinite(logit)) { broken = 1u; }
  }
  let id7 = slice * 16u * 256u + 7u * 256u + thread;
  var key7 = 0u;
  if (id7 < param(0u)) {
    let logit = logits[draw * param(1u) + id7];
    key7 = orderKey(logit);
    if (!isFinite(logit)) { broken = 1u; }
  }
  let id8 = slice * 16u * 256u + 8u * 256u + thread;
  var key8 = 0u;
  if (id8 < param(0u)) {
    let logit = logits[draw * param(1u) + id8];
    key8 = orderKey(logit);
    if (!isFinite(logit)) { broken = 1u; }
  }
  let id9 = slice * 16u * 256u + 9u * 256u + thread;
  var key9 = 0u;
  if (id9 < param(0u)) {
    let logit = logits[draw * param(1u) + id9];
    key9 = orderKey(logit);
    if (!isFinite(logit)) { broken = 1u; }
  }
  let id10 = slice * 16u * 256u + 10u * 256u + thread;
  var key10 = 0u;
  if (id10 < param(0u)) {
    let logit = logits[draw * param(1u) + id10];
    key10 = orderKey(logit);
    if (!isFinite(logit)) { broken = 1u; }
  }
  let id11 = slice * 16u * 256u + 11u * 256u + thread;
  var key11 = 0u;
  if (id11 < param(0u)) {
    let logit = logits[draw * param(1u) + id11];
    key11 = orderKey(logit);
    if (!isFinite(logit)) { broken = 1u; }
  }
  let id12 = slice * 16u * 256u + 12u * 256u + thread;
  var key12 = 0u;
  if (id12 < param(0u)) {
    let logit = logits[draw * param(1u) + id12];
    key12 = orderKey(logit);
    if (!isFinite(logit)) { broken = 1u; }
  }
  let id13 = slice * 16u * 256u + 13u * 256u + thread;
  var key13 = 0u;
  if (id13 < param(0u)) {
    let logit = logits[draw * param(1u) + id13];
    key13 = orderKey(logit);
    if (!isFinite(logit)) { broken = 1u; }
  }
  let id14 = slice * 16u * 256u + 14u * 256u + thread;
  var key14 = 0u;
  if (id14 < param(0u)) {
    let logit = logits[draw * param(1u) + id14];
    key14 = orderKey(logit);
    if (!isFinite(logit)) { broken = 1u; }
  }
  let id15 = slice * 16u * 256u + 15u * 256u + thread;
  var key15 = 0u;
  if (id15 < param(0u)) {
    let logit = logits[draw * param(1u) + id15];
    key15 = orderKey(logit);
    if (!isFinite(logit)) { broken = 1u; }
  }
  let record = (draw * param(2u) + slice) * (passTop() + 1u);
  let flag = winner(thread, vec2<u32>(broken, 0u)).x;
  if (thread == 0u) { pairs[record] = vec2<u32>(flag, 0u); }
  for (var n = 0u; n < wanted; n++) {
    var own = vec2<u32>(0u, 0xffffffffu);
    if (key0 > own.x) { own = vec2<u32>(key0, id0); }
    if (key1 > own.x) { own = vec2<u32>(key1, id1); }
    if (key2 > own.x) { own = vec2<u32>(key2, id2); }
    if (key3 > own.x) { own = vec2<u32>(key3, id3); }
    if (key4 > own.x) { own = vec2<u32>(key4, id4); }
    if (key5 > own.x) { own = vec2<u32>(key5, id5); }
    if (key6 > own.x) { own = vec2<u32>(key6, id6); }
    if (key7 > own.x) { own = vec2<u32>(key7, id7); }
    if (key8 > own.x) { own = vec2<u32>(key8, id8); }
    if (key9 > own.x) { own = vec2<u32>(key9, id9); }
    if (key10 > own.x) { own = vec2<u32>(key10, id10); }
    if (key11 > own.x) { own = vec2<u32>(key11, id11); }
    if (key12 > own.x) { own = vec2<u32>(key12, id12); }
    if (key13 > own.x) { own = vec2<u32>(key13, id13); }
    if (key14 > own.x) { own = vec2<u32>(key14, id14); }
    if (key15 > own.x) { own = vec2<u32>(key15, id15); }
    let best = winner(thread, own);
    if (thread == 0u) { pairs[record + 1u + n] = best; }
    if (id0 == best.y) { key0 = 0u; }
    if (id1 == best.y) { key1 = 0u; }
    if (id2 == best.y) { key2 = 0u; }
    if (id3 == best.y) { key3 = 0u; }
    if (id4 == best.y) { key4 = 0u; }
    if (id5 == best.y) { key5 = 0u; }
    if (id6 == best.y) { key6 = 0u; }
    if (id7 == best.y) { key7 = 0u; }
    if (id8 == best.y) { key8 = 0u; }
    if (id9 == best.y) { key9 = 0u; }
    if (id10 == best.y) { key10 = 0u; }
    if (id11 == best.y) { key11 = 0u; }
    if (id12 == best.y) { key12 = 0u; }
    if (id13 == best.y) { key13 = 0u; }
    if (id14 == best.y) { key14 = 0u; }
    if (id15 == best.y) { key15 = 0u; }
  }
}
