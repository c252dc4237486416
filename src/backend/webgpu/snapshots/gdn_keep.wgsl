// GDN_KEEP: commits a path of windows' rows, one workgroup a (window, value head, layer): S ← g·S; S ← S + k·δᵀ
// with the g, k and δ that gdn.wgsl logged. Each word of the state sees the operations of a scan in its
// order, so the bits are those of a chain. The conv history comes from the logged raw rows. Segments of the
// pass are the windows, and their rows the path's. In place, as in gdn.wgsl.
//
// A thread holds 16 key rows × 4 columns. It is bound by latency, so 4 rows are loaded at once,
// and the history goes its way while the state comes.
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

// What the kernels of Gated DeltaNet share. Everything is counted in vectors of four channels ("quads").
const keyQuads = 128u / 4u;
const valueQuads = 128u / 4u;
// Of one row and value head: its query, key and value.
const items = 2u * keyQuads + valueQuads;
const channels = 2u * 16u * keyQuads + 48u * valueQuads;
const stateQuads = 48u * 128u * valueQuads;
// Raw rows that the convolution looks back.
const depth = 4u - 1u;
const headsPerKey = 48u / 16u;
// A row of a window's log: g of each value head, δ, keys after the convolution, raw q, k and v.
const logDeltas = 48u;
const logKeys = logDeltas + 48u * valueQuads;
const logRaw = logKeys + 16u * keyQuads;
const logQuads = logRaw + channels;

// The first log row of a slot.
fn logOf(slot: u32) -> u32 { return slot * 16u * logQuads; }

// Where item `item` of a value head stands among a row's channels.
fn channelOf(item: u32, head: u32) -> u32 {
  let keyHead = head / headsPerKey;
  if (item < keyQuads) { return keyHead * keyQuads + item; }
  if (item < 2u * keyQuads) { return (16u + keyHead) * keyQuads + item - keyQuads; }
  return 2u * 16u * keyQuads + head * valueQuads + item - 2u * keyQuads;
}

// Value heads share their key head's channels; the first of them writes what is written of those.
fn owns(item: u32, head: u32) -> bool { return item >= 2u * keyQuads || head % headsPerKey == 0u; }

@group(0) @binding(2) var<storage, read> windowLog: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> history: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> state: array<vec4<f32>>;

// params: quads from layer to layer, 0 of logs, 1 of histories, 2 of states
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let head = group.x;
  let segment = group.y;
  let column = thread % valueQuads;
  let part = thread / valueQuads;
  let rows = segmentWord(segment, 1u);
  let slot = segmentWord(segment, 2u);
  let first = group.z * param(0u) + logOf(slot);
  let path = pathOf(segment);
  let at = group.z * param(2u) + slot * stateQuads + (head * 128u + part * 16u) * valueQuads + column;
  var s0x = state[at + (4u * 0u) * valueQuads];
  var s0y = state[at + (4u * 0u + 1u) * valueQuads];
  var s0z = state[at + (4u * 0u + 2u) * valueQuads];
  var s0w = state[at + (4u * 0u + 3u) * valueQuads];
  var s1x = state[at + (4u * 1u) * valueQuads];
  var s1y = state[at + (4u * 1u + 1u) * valueQuads];
  var s1z = state[at + (4u * 1u + 2u) * valueQuads];
  var s1w = state[at + (4u * 1u + 3u) * valueQuads];
  var s2x = state[at + (4u * 2u) * valueQuads];
  var s2y = state[at + (4u * 2u + 1u) * valueQuads];
  var s2z = state[at + (4u * 2u + 2u) * valueQuads];
  var s2w = state[at + (4u * 2u + 3u) * valueQuads];
  var s3x = state[at + (4u * 3u) * valueQuads];
  var s3y = state[at + (4u * 3u + 1u) * valueQuads];
  var s3z = state[at + (4u * 3u + 2u) * valueQuads];
  var s3w = state[at + (4u * 3u + 3u) * valueQuads];
  let old = group.z * param(1u) + segmentWord(segment, 5u) * depth * channels;
  let next = group.z * param(1u) + segmentWord(segment, 6u) * depth * channels;
  for (var index = thread; index < depth * items; index += 256u) {
    let item = index % items;
    if (!owns(item, head)) { continue; }
    let channel = channelOf(item, head);
    let place = index / items;
    // Raw row rows + place of (old history, the path's rows).
    var value: vec4<f32>;
    if (rows + place >= depth) {
      value = windowLog[first + pathRow(path, rows + place - depth) * logQuads + logRaw + channel];
    } else {
      value = history[old + (rows + place) * channels + channel];
    }
    history[next + place * channels + channel] = value;
  }
  for (var begin = 0u; begin < rows; begin += 4u) {
    // Past the last row, the last is read again and left out below.
    let row0 = first + pathRow(path, min(begin + 0u, rows - 1u)) * logQuads;
    let g0 = windowLog[row0 + head].x;
    let delta0 = windowLog[row0 + logDeltas + head * valueQuads + column];
    let k0_0 = windowLog[row0 + logKeys + head / headsPerKey * keyQuads + part * 4u + 0u];
    let k0_1 = windowLog[row0 + logKeys + head / headsPerKey * keyQuads + part * 4u + 1u];
    let k0_2 = windowLog[row0 + logKeys + head / headsPerKey * keyQuads + part * 4u + 2u];
    let k0_3 = windowLog[row0 + logKeys + head / headsPerKey * keyQuads + part * 4u + 3u];
    // Past the last row, the last is read again and left out below.
    let row1 = first + pathRow(path, min(begin + 1u, rows - 1u)) * logQuads;
    let g1 = windowLog[row1 + head].x;
    let delta1 = windowLog[row1 + logDeltas + head * valueQuads + column];
    let k1_0 = windowLog[row1 + logKeys + head / headsPerKey * keyQuads + part * 4u + 0u];
    let k1_1 = windowLog[row1 + logKeys + head / headsPerKey * keyQuads + part * 4u + 1u];
    let k1_2 = windowLog[row1 + logKeys + head / headsPerKey * keyQuads + part * 4u + 2u];
    let k1_3 = windowLog[row1 + logKeys + head / headsPerKey * keyQuads + part * 4u + 3u];
    // Past the last row, the last is read again and left out below.
    let row2 = first + pathRow(path, min(begin + 2u, rows - 1u)) * logQuads;
    let g2 = windowLog[row2 + head].x;
    let delta2 = windowLog[row2 + logDeltas + head * valueQuads + column];
    let k2_0 = windowLog[row2 + logKeys + head / headsPerKey * keyQuads + part * 4u + 0u];
    let k2_1 = windowLog[row2 + logKeys + head / headsPerKey * keyQuads + part * 4u + 1u];
    let k2_2 = windowLog[row2 + logKeys + head / headsPerKey * keyQuads + part * 4u + 2u];
    let k2_3 = windowLog[row2 + logKeys + head / headsPerKey * keyQuads + part * 4u + 3u];
    // Past the last row, the last is read again and left out below.
    let row3 = first + pathRow(path, min(begin + 3u, rows - 1u)) * logQuads;
    let g3 = windowLog[row3 + head].x;
    let delta3 = windowLog[row3 + logDeltas + head * valueQuads + column];
    let k3_0 = windowLog[row3 + logKeys + head / headsPerKey * keyQuads + part * 4u + 0u];
    let k3_1 = windowLog[row3 + logKeys + head / headsPerKey * keyQuads + part * 4u + 1u];
    let k3_2 = windowLog[row3 + logKeys + head / headsPerKey * keyQuads + part * 4u + 2u];
    let k3_3 = windowLog[row3 + logKeys + head / headsPerKey * keyQuads + part * 4u + 3u];
    if (begin + 0u < rows) {
      s0x = fma(vec4<f32>(k0_0.x), delta0, s0x * g0);
      s0y = fma(vec4<f32>(k0_0.y), delta0, s0y * g0);
      s0z = fma(vec4<f32>(k0_0.z), delta0, s0z * g0);
      s0w = fma(vec4<f32>(k0_0.w), delta0, s0w * g0);
      s1x = fma(vec4<f32>(k0_1.x), delta0, s1x * g0);
      s1y = fma(vec4<f32>(k0_1.y), delta0, s1y * g0);
      s1z = fma(vec4<f32>(k0_1.z), delta0, s1z * g0);
      s1w = fma(vec4<f32>(k0_1.w), delta0, s1w * g0);
      s2x = fma(vec4<f32>(k0_2.x), delta0, s2x * g0);
      s2y = fma(vec4<f32>(k0_2.y), delta0, s2y * g0);
      s2z = fma(vec4<f32>(k0_2.z), delta0, s2z * g0);
      s2w = fma(vec4<f32>(k0_2.w), delta0, s2w * g0);
      s3x = fma(vec4<f32>(k0_3.x), delta0, s3x * g0);
      s3y = fma(vec4<f32>(k0_3.y), delta0, s3y * g0);
      s3z = fma(vec4<f32>(k0_3.z), delta0, s3z * g0);
      s3w = fma(vec4<f32>(k0_3.w), delta0, s3w * g0);
    }
    if (begin + 1u < rows) {
      s0x = fma(vec4<f32>(k1_0.x), delta1, s0x * g1);
      s0y = fma(vec4<f32>(k1_0.y), delta1, s0y * g1);
      s0z = fma(vec4<f32>(k1_0.z), delta1, s0z * g1);
      s0w = fma(vec4<f32>(k1_0.w), delta1, s0w * g1);
      s1x = fma(vec4<f32>(k1_1.x), delta1, s1x * g1);
      s1y = fma(vec4<f32>(k1_1.y), delta1, s1y * g1);
      s1z = fma(vec4<f32>(k1_1.z), delta1, s1z * g1);
      s1w = fma(vec4<f32>(k1_1.w), delta1, s1w * g1);
      s2x = fma(vec4<f32>(k1_2.x), delta1, s2x * g1);
      s2y = fma(vec4<f32>(k1_2.y), delta1, s2y * g1);
      s2z = fma(vec4<f32>(k1_2.z), delta1, s2z * g1);
      s2w = fma(vec4<f32>(k1_2.w), delta1, s2w * g1);
      s3x = fma(vec4<f32>(k1_3.x), delta1, s3x * g1);
      s3y = fma(vec4<f32>(k1_3.y), delta1, s3y * g1);
      s3z = fma(vec4<f32>(k1_3.z), delta1, s3z * g1);
      s3w = fma(vec4<f32>(k1_3.w), delta1, s3w * g1);
    }
    if (begin + 2u < rows) {
      s0x = fma(vec4<f32>(k2_0.x), delta2, s0x * g2);
      s0y = fma(vec4<f32>(k2_0.y), delta2, s0y * g2);
      s0z = fma(vec4<f32>(k2_0.z), delta2, s0z * g2);
      s0w = fma(vec4<f32>(k2_0.w), delta2, s0w * g2);
      s1x = fma(vec4<f32>(k2_1.x), delta2, s1x * g2);
      s1y = fma(vec4<f32>(k2_1.y), delta2, s1y * g2);
      s1z = fma(vec4<f32>(k2_1.z), delta2, s1z * g2);
      s1w = fma(vec4<f32>(k2_1.w), delta2, s1w * g2);
      s2x = fma(vec4<f32>(k2_2.x), delta2, s2x * g2);
      s2y = fma(vec4<f32>(k2_2.y), delta2, s2y * g2);
      s2z = fma(vec4<f32>(k2_2.z), delta2, s2z * g2);
      s2w = fma(vec4<f32>(k2_2.w), delta2, s2w * g2);
      s3x = fma(vec4<f32>(k2_3.x), delta2, s3x * g2);
      s3y = fma(vec4<f32>(k2_3.y), delta2, s3y * g2);
      s3z = fma(vec4<f32>(k2_3.z), delta2, s3z * g2);
      s3w = fma(vec4<f32>(k2_3.w), delta2, s3w * g2);
    }
    if (begin + 3u < rows) {
      s0x = fma(vec4<f32>(k3_0.x), delta3, s0x * g3);
      s0y = fma(vec4<f32>(k3_0.y), delta3, s0y * g3);
      s0z = fma(vec4<f32>(k3_0.z), delta3, s0z * g3);
      s0w = fma(vec4<f32>(k3_0.w), delta3, s0w * g3);
      s1x = fma(vec4<f32>(k3_1.x), delta3, s1x * g3);
      s1y = fma(vec4<f32>(k3_1.y), delta3, s1y * g3);
      s1z = fma(vec4<f32>(k3_1.z), delta3, s1z * g3);
      s1w = fma(vec4<f32>(k3_1.w), delta3, s1w * g3);
      s2x = fma(vec4<f32>(k3_2.x), delta3, s2x * g3);
      s2y = fma(vec4<f32>(k3_2.y), delta3, s2y * g3);
      s2z = fma(vec4<f32>(k3_2.z), delta3, s2z * g3);
      s2w = fma(vec4<f32>(k3_2.w), delta3, s2w * g3);
      s3x = fma(vec4<f32>(k3_3.x), delta3, s3x * g3);
      s3y = fma(vec4<f32>(k3_3.y), delta3, s3y * g3);
      s3z = fma(vec4<f32>(k3_3.z), delta3, s3z * g3);
      s3w = fma(vec4<f32>(k3_3.w), delta3, s3w * g3);
    }
  }
  state[at + (4u * 0u) * valueQuads] = s0x;
  state[at + (4u * 0u + 1u) * valueQuads] = s0y;
  state[at + (4u * 0u + 2u) * valueQuads] = s0z;
  state[at + (4u * 0u + 3u) * valueQuads] = s0w;
  state[at + (4u * 1u) * valueQuads] = s1x;
  state[at + (4u * 1u + 1u) * valueQuads] = s1y;
  state[at + (4u * 1u + 2u) * valueQuads] = s1z;
  state[at + (4u * 1u + 3u) * valueQuads] = s1w;
  state[at + (4u * 2u) * valueQuads] = s2x;
  state[at + (4u * 2u + 1u) * valueQuads] = s2y;
  state[at + (4u * 2u + 2u) * valueQuads] = s2z;
  state[at + (4u * 2u + 3u) * valueQuads] = s2w;
  state[at + (4u * 3u) * valueQuads] = s3x;
  state[at + (4u * 3u + 1u) * valueQuads] = s3y;
  state[at + (4u * 3u + 2u) * valueQuads] = s3z;
  state[at + (4u * 3u + 3u) * valueQuads] = s3w;
}
