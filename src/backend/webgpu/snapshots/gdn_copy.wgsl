// GDN_COPY: brings the states of the chains that gdn.wgsl wrote `param(0)` slots further on home: what a scan
// that can't run in place has to do. For comparisons only. One thread a quad of a segment's state.
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
  return bitcast<f32>(passWords[passWords[8] + row * 64u + index]);
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

@group(0) @binding(2) var<storage, read_write> state: array<vec4<f32>>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let segment = id.y;
  if (id.x >= stateQuads || segmentWord(segment, 7u) != 0u) { return; }
  let next = segmentWord(segment, 3u);
  state[next * stateQuads + id.x] = state[(next + param(0u)) * stateQuads + id.x];
}
