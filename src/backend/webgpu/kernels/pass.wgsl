// The pass that every kernel works on: what `pass.ts` writes. Words from `passWords[0]`:
// rows, draws, segments, then the offsets (in words) of the arrays below.
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
// Segment record: first row, rows, state slot, next slot, offset of its page table.
fn segmentWord(segment: u32, word: u32) -> u32 { return passWords[passWords[7] + segment * 8u + word]; }
fn pageOf(segment: u32, position: u32) -> u32 {
  return passWords[segmentWord(segment, 4u) + position / {PAGE_ROWS}u];
}
// Angles of a row: cosines, then sines.
fn ropeValue(row: u32, index: u32) -> f32 {
  return bitcast<f32>(passWords[passWords[8] + row * {ROTARY_DIM}u + index]);
}
// Where column `column` of a projection's input stands in its row (project.wgsl says why).
fn permuted(column: u32) -> u32 {
  let within = column % 1024u;
  let j = (within % 32u) / 4u;
  return (column / 1024u) * 1024u + (j * 32u + within / 32u) * 4u + within % 4u;
}
fn sigmoid(x: f32) -> f32 { return 1.0 / (1.0 + exp(-x)); }
fn silu(x: f32) -> f32 { return x * sigmoid(x); }
