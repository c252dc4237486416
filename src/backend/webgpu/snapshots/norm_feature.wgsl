// NORM_FEATURE: norm.wgsl behind a layer whose output is a drafter's feature, which it keeps.
// NORM: h += Σ updates; out = h · (1 ÷ √(mean of h² + eps)) · weight. One workgroup a row, for every norm of the
// residual stream. The updates are 8 slices of a projection's output, added ascending and then to h as one
// sum; none where a projection adds to h itself, or nothing is pending. With `draws` only the rows that draw are
// normed, and take the updates. Out is a projection's input (pass.wgsl inputAt).
//
// What a drafter adds: without RESIDUAL there is no h, but the updates alone; FEATURE keeps h as a feature, in the
// slot's places; with CONV the updates go through the drafter's convolution first (dynamic_taps.wgsl).
//
// A width is a multiple of four, and a thread takes quads of columns. One row is bound by latency, so a thread
// loads all of its quads before it uses any, and keeps them; and few steps wait for the workgroup.
//
// Exactness: lane l of 1024 is one chain of fma over the columns of quads l, l + 1024, …; part p of 32 is the sum
// (sumOf) of lanes p, p + 32, …; the sum of squares is that of the parts. 1024 divides 1024, so that a lane
// is one thread's, and changes no bit.
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
  return bitcast<f32>(passWords[passWords[8] + row * 64u + index]);
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

@group(0) @binding(2) var<storage, read_write> hidden: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> weight: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> output: array<InputQuad>;
@group(0) @binding(5) var<storage, read> updates: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read_write> features: array<vec4<f32>>;

const lanes = 1024u;
const parts = 32u;
// The lanes, then the parts. Lanes without a quad stay zero.
var<workgroup> sums: array<f32, lanes + parts>;
var<workgroup> scale: f32;

fn addSquares(sum: f32, x: vec4<f32>) -> f32 {
  return fma(x.w, x.w, fma(x.z, x.z, fma(x.y, x.y, fma(x.x, x.x, sum))));
}

// Of the 32 sums first, first + step, …: four chains of every fourth, then these in pairs.
fn sumOf(first: u32, step: u32) -> f32 {
  var chains = vec4<f32>(0.0);
  for (var i = 0u; i < 32u; i += 4u) {
    let at = first + i * step;
    chains += vec4<f32>(sums[at], sums[at + step], sums[at + 2u * step], sums[at + 3u * step]);
  }
  return (chains.x + chains.y) + (chains.z + chains.w);
}

// params: 0 width, 1 hidden stride, 2 output stride, 3 eps, 4 draws, 5 update stride, 6 floats from slice to slice;
// FEATURE: 7 places a slot, 8 quads a place, 9 the feature's first
@compute @workgroup_size(1024)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let draws = param(4u) != 0u;
  if (group.y >= select(passRows(), passDraws(), draws)) { return; }
  var row = group.y;
  if (draws) { row = drawRow(group.y); }
  let quads = param(0u) / 4u;
  let first = row * param(1u) / 4u;
  let firstUpdate = row * param(5u) / 4u;
  let slice = param(6u) / 4u;
  // Without a branch the loads stay together: past the end, the last quad is read and left out below.
  let quad0 = min(thread + 0u, quads - 1u);
  var x0 = hidden[first + quad0];
  let weight0 = weight[quad0];
  let update0_0 = updates[firstUpdate + quad0 + 0u * slice];
  let update0_1 = updates[firstUpdate + quad0 + 1u * slice];
  let update0_2 = updates[firstUpdate + quad0 + 2u * slice];
  let update0_3 = updates[firstUpdate + quad0 + 3u * slice];
  let update0_4 = updates[firstUpdate + quad0 + 4u * slice];
  let update0_5 = updates[firstUpdate + quad0 + 5u * slice];
  let update0_6 = updates[firstUpdate + quad0 + 6u * slice];
  let update0_7 = updates[firstUpdate + quad0 + 7u * slice];
  // Without a branch the loads stay together: past the end, the last quad is read and left out below.
  let quad1 = min(thread + 1024u, quads - 1u);
  var x1 = hidden[first + quad1];
  let weight1 = weight[quad1];
  let update1_0 = updates[firstUpdate + quad1 + 0u * slice];
  let update1_1 = updates[firstUpdate + quad1 + 1u * slice];
  let update1_2 = updates[firstUpdate + quad1 + 2u * slice];
  let update1_3 = updates[firstUpdate + quad1 + 3u * slice];
  let update1_4 = updates[firstUpdate + quad1 + 4u * slice];
  let update1_5 = updates[firstUpdate + quad1 + 5u * slice];
  let update1_6 = updates[firstUpdate + quad1 + 6u * slice];
  let update1_7 = updates[firstUpdate + quad1 + 7u * slice];
  var update0 = update0_0;
  update0 += update0_1;
  update0 += update0_2;
  update0 += update0_3;
  update0 += update0_4;
  update0 += update0_5;
  update0 += update0_6;
  update0 += update0_7;
  x0 += update0;
  var update1 = update1_0;
  update1 += update1_1;
  update1 += update1_2;
  update1 += update1_3;
  update1 += update1_4;
  update1 += update1_5;
  update1 += update1_6;
  update1 += update1_7;
  x1 += update1;
  if (thread + 0u < quads) {
    let lane = (thread + 0u) % lanes;
    sums[lane] = addSquares(sums[lane], x0);
  }
  if (thread + 1024u < quads) {
    let lane = (thread + 1024u) % lanes;
    sums[lane] = addSquares(sums[lane], x1);
  }
  workgroupBarrier();
  if (thread < parts) { sums[lanes + thread] = sumOf(thread, parts); }
  workgroupBarrier();
  if (thread == 0u) { scale = 1.0 / sqrt(sumOf(lanes, 1u) / f32(param(0u)) + paramFloat(3u)); }
  workgroupBarrier();
  let slot = segmentWord(rowSegment(row), 3u);
  let kept = featureRow(slot, rowPlace(row), param(7u)) * param(8u) + param(9u);
  if (thread + 0u < quads) {
    hidden[first + quad0] = x0;
    features[kept + quad0] = x0;
    let at = inputAt(group.y, 4u * quad0, param(2u)) / 4u;
    output[at] = asInputs(x0 * scale * weight0);
  }
  if (thread + 1024u < quads) {
    hidden[first + quad1] = x1;
    features[kept + quad1] = x1;
    let at = inputAt(group.y, 4u * quad1, param(2u)) / 4u;
    output[at] = asInputs(x1 * scale * weight1);
  }
}
