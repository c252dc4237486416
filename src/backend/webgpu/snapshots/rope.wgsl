// ROPE: one workgroup a (row, query head or KV head). Queries: normed, rotated, written to q. Keys: normed,
// rotated, written to the page of their place, with their values, in the page's layout (attend.wgsl); with
// 16-bit KV both are rounded here, once. Called before attend in every pass. What the projections left are
// 8 slices, added ascending.
// There are 32 query heads, each the first of 1 vectors. A drafter's context has none, but the
// keys of several layers: KV heads of all are counted through, and layer l's lie l times a stride further on.
// Sum of squares: lane t takes dims t, t + 64, …; then a tree.
enable f16;
// The pass that every kernel works on: what `pass.ts` writes. Words from `passWords[0]`:
// rows, draws, segments, then the offsets (in words) of the arrays below, then how attention and top-k are cut.
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
alias Input = f32;
alias InputQuad = vec4<f32>;
fn inputAt(row: u32, column: u32, stride: u32) -> u32 {
  let within = column % 1024u;
  let j = (within % 32u) / 4u;
  return row * stride + column / 1024u * 1024u + (j * 32u + within / 32u) * 4u + within % 4u;
}
fn asInput(value: f32) -> Input { return value; }
fn asInputs(value: vec4<f32>) -> InputQuad { return value; }
fn sigmoid(x: f32) -> f32 { return 1.0 / (1.0 + exp(-x)); }

@group(0) @binding(2) var<storage, read> queryGate: array<f32>;
@group(0) @binding(3) var<storage, read> key: array<f32>;
@group(0) @binding(4) var<storage, read> value: array<f32>;
@group(0) @binding(5) var<storage, read> norms: array<f32>;
@group(0) @binding(6) var<storage, read_write> query: array<f32>;
@group(0) @binding(7) var<storage, read_write> keys: array<f16>;
@group(0) @binding(8) var<storage, read_write> values: array<f16>;

var<workgroup> squares: array<f32, 64>;
var<workgroup> normed: array<f32, 128>;

// params: 0 queryGate stride, 1 key stride, 2 value stride, 3 q stride, 4 eps, 5 floats from slice to slice; from layer
// to layer 6 floats of keys and of values, 7 numbers of their pages
fn queryAt(at: u32) -> f32 {
  var sum = queryGate[at];
  sum += queryGate[at + 1u * param(5u)];
  sum += queryGate[at + 2u * param(5u)];
  sum += queryGate[at + 3u * param(5u)];
  sum += queryGate[at + 4u * param(5u)];
  sum += queryGate[at + 5u * param(5u)];
  sum += queryGate[at + 6u * param(5u)];
  sum += queryGate[at + 7u * param(5u)];
  return sum;
}
fn keyAt(at: u32) -> f32 {
  var sum = key[at];
  sum += key[at + 1u * param(5u)];
  sum += key[at + 2u * param(5u)];
  sum += key[at + 3u * param(5u)];
  sum += key[at + 4u * param(5u)];
  sum += key[at + 5u * param(5u)];
  sum += key[at + 6u * param(5u)];
  sum += key[at + 7u * param(5u)];
  return sum;
}
fn valueAt(at: u32) -> f32 {
  var sum = value[at];
  sum += value[at + 1u * param(5u)];
  sum += value[at + 2u * param(5u)];
  sum += value[at + 3u * param(5u)];
  sum += value[at + 4u * param(5u)];
  sum += value[at + 5u * param(5u)];
  sum += value[at + 6u * param(5u)];
  sum += value[at + 7u * param(5u)];
  return sum;
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let row = group.y;
  let head = group.x;
  if (row >= passRows()) { return; }
  let isQuery = head < 32u;
  let layer = (head - 32u) / 8u;
  let kvHead = (head - 32u) % 8u;
  let keyColumn = layer * param(6u) + kvHead * 128u;
  var sum = 0.0;
  for (var i = thread; i < 128u; i += 64u) {
    var x: f32;
    if (isQuery) { x = queryAt(row * param(0u) + head * 128u + i); }
    else { x = keyAt(row * param(1u) + keyColumn + i); }
    normed[i] = x;
    sum = fma(x, x, sum);
  }
  squares[thread] = sum;
  for (var half = 32u; half > 0u; half /= 2u) {
    workgroupBarrier();
    if (thread < half) { squares[thread] += squares[thread + half]; }
  }
  workgroupBarrier();
  let scale = 1.0 / sqrt(squares[0] / f32(128u) + paramFloat(4u));
  // The queries' norm is the first, where there are any.
  let normAt = select(128u, 0u, isQuery);
  for (var i = thread; i < 128u; i += 64u) { normed[i] = normed[i] * scale * norms[normAt + i]; }
  workgroupBarrier();
  let place = rowPlace(row);
  let inPage = place % 64u;
  let page = layer * param(7u) + (pageOf(rowSegment(row), place) * 8u + kvHead) * 8192u;
  let half = 128u / 2u;
  for (var i = thread; i < 128u; i += 64u) {
    var x = normed[i];
    if (i < half) {
      x = normed[i] * ropeValue(row, i) - normed[i + half] * ropeValue(row, half + i);
    } else if (i < 128u) {
      x = normed[i] * ropeValue(row, i - half) + normed[i - half] * ropeValue(row, i);
    }
    if (isQuery) { query[row * param(3u) + head * 128u + i] = x; }
    else {
      keys[page + (i / 4u * 64u + inPage) * 4u + i % 4u] = f16(x);
      let v = valueAt(row * param(2u) + keyColumn + i);
      values[page + inPage * 128u + i] = f16(v);
    }
  }
}
