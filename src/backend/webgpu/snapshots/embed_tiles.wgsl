// EMBED_TILES: out[row] = E[id of the row], in natural order, in f32. E lies as tiles_common.wgsl says; one part
// of it may hold only some of the rows, and rows of other parts are left alone.
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

@group(0) @binding(2) var<storage, read> codes: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> scales: array<u32>;
@group(0) @binding(4) var<storage, read_write> output: array<f32>;

// params: 0 width, 1 blocks of 64 columns, 2 output stride, 3 first id here, 4 ids here
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let row = id.y;
  let column = id.x;
  if (row >= passRows() || column >= param(0u)) { return; }
  let token = rowId(row);
  if (token < param(3u) || token >= param(3u) + param(4u)) { return; }
  let w = token - param(3u);
  let block = w / 16u * param(1u) + column / 64u;
  let lane = w % 16u + 16u * (column / 8u % 2u);
  let t = column / 16u % 4u;
  let j = column % 8u;
  let at = block * 1u * 16u + w % 16u;
  let code = (codes[block * 32u + lane][t] >> (4u * (j / 2u + 4u * (j % 2u)))) & 15u;
  let pair = unpack2x16float(scales[at + t / 4u * 16u]);
  let value = fma(f32(code), pair.x, pair.y);
  output[row * param(2u) + column] = value;
}
