// PROJECT: y[row, n] (+)= Σ_k W[n, k] · x[row, k]. Called for every projection, prompt and decode.
//
// W: [rows of W, steps of 1024 columns, chunks, 32 lanes] of 16 bytes; a lane owns 32 neighbouring columns
// of each step. x: f32, permuted so that vec4 j of all 32 lanes lie side by side (pass.wgsl inputAt),
// which makes both reads contiguous. Columns past K are zero in x.
//
// Exactness: y[row, n] is summed per lane over steps ascending, in a step over vec4 j ascending, with fma
// alone; then over the 32 lanes by a fixed tree. Nothing depends on how many rows there are (8 of
// them share one reading of W), on which workgroup has them or on the subgroup's size. Accumulators are f32.
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

@group(0) @binding(2) var<storage, read> input: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> codes: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> scales: array<u32>;
@group(0) @binding(5) var<storage, read_write> output: array<f32>;

var<workgroup> partial: array<f32, 2048>;

fn lanes(v: vec4<f32>) -> f32 { return (v.x + v.y) + (v.z + v.w); }

// params: 0 rows of W here, 1 steps, 2 input stride (vec4), 3 output stride, 4 accumulate, 5 draws,
// 6 groups a row, 7 columns a group, 8 first output column, 9 lines of workgroups
@compute @workgroup_size(128)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(local_invocation_index) thread: u32,
) {
  let lane = thread % 32u;
  let warp = thread / 32u;
  let wRows = param(0u);
  let steps = param(1u);
  let rows = select(passRows(), passDraws(), param(5u) != 0u);
  let firstRow = group.y * 8u;
  let slice = warp % 1u;
  let firstN = ((group.z * param(9u) + group.x) * (128u / 32u / 1u) + warp / 1u) * 2u;
  if (firstRow >= rows) { return; }
  let x0 = min(firstRow + 0u, rows - 1u) * param(2u) + lane;
  let x1 = min(firstRow + 1u, rows - 1u) * param(2u) + lane;
  let x2 = min(firstRow + 2u, rows - 1u) * param(2u) + lane;
  let x3 = min(firstRow + 3u, rows - 1u) * param(2u) + lane;
  let x4 = min(firstRow + 4u, rows - 1u) * param(2u) + lane;
  let x5 = min(firstRow + 5u, rows - 1u) * param(2u) + lane;
  let x6 = min(firstRow + 6u, rows - 1u) * param(2u) + lane;
  let x7 = min(firstRow + 7u, rows - 1u) * param(2u) + lane;
  let w0 = min(firstN + 0u, wRows - 1u);
  var acc0_0 = 0.0;
  var acc0_1 = 0.0;
  var acc0_2 = 0.0;
  var acc0_3 = 0.0;
  var acc0_4 = 0.0;
  var acc0_5 = 0.0;
  var acc0_6 = 0.0;
  var acc0_7 = 0.0;
  let w1 = min(firstN + 1u, wRows - 1u);
  var acc1_0 = 0.0;
  var acc1_1 = 0.0;
  var acc1_2 = 0.0;
  var acc1_3 = 0.0;
  var acc1_4 = 0.0;
  var acc1_5 = 0.0;
  var acc1_6 = 0.0;
  var acc1_7 = 0.0;
  var next0_0 = codes[((w0 * steps + min(slice, steps - 1u)) * 1u + 0u) * 32u + lane];
  var next1_0 = codes[((w1 * steps + min(slice, steps - 1u)) * 1u + 0u) * 32u + lane];
  for (var step = slice; step < steps; step += 1u) {
    // The codes of the step after this one are on their way while this one is computed.
    let later = min(step + 1u, steps - 1u);
    let c0_0 = next0_0;
    next0_0 = codes[((w0 * steps + later) * 1u + 0u) * 32u + lane];
    let c1_0 = next1_0;
    next1_0 = codes[((w1 * steps + later) * 1u + 0u) * 32u + lane];
    var sum0 = vec4<f32>(0.0);
    var sum1 = vec4<f32>(0.0);
    var sum2 = vec4<f32>(0.0);
    var sum3 = vec4<f32>(0.0);
    var sum4 = vec4<f32>(0.0);
    var sum5 = vec4<f32>(0.0);
    var sum6 = vec4<f32>(0.0);
    var sum7 = vec4<f32>(0.0);
    var d0_0 = vec4<f32>(0.0);
    var d0_1 = vec4<f32>(0.0);
    var d0_2 = vec4<f32>(0.0);
    var d0_3 = vec4<f32>(0.0);
    var d0_4 = vec4<f32>(0.0);
    var d0_5 = vec4<f32>(0.0);
    var d0_6 = vec4<f32>(0.0);
    var d0_7 = vec4<f32>(0.0);
    var d1_0 = vec4<f32>(0.0);
    var d1_1 = vec4<f32>(0.0);
    var d1_2 = vec4<f32>(0.0);
    var d1_3 = vec4<f32>(0.0);
    var d1_4 = vec4<f32>(0.0);
    var d1_5 = vec4<f32>(0.0);
    var d1_6 = vec4<f32>(0.0);
    var d1_7 = vec4<f32>(0.0);
    {
      let v0 = input[x0 + (step * 8u + 0u * 8u + 0u) * 32u];
      sum0 += v0;
      let v1 = input[x1 + (step * 8u + 0u * 8u + 0u) * 32u];
      sum1 += v1;
      let v2 = input[x2 + (step * 8u + 0u * 8u + 0u) * 32u];
      sum2 += v2;
      let v3 = input[x3 + (step * 8u + 0u * 8u + 0u) * 32u];
      sum3 += v3;
      let v4 = input[x4 + (step * 8u + 0u * 8u + 0u) * 32u];
      sum4 += v4;
      let v5 = input[x5 + (step * 8u + 0u * 8u + 0u) * 32u];
      sum5 += v5;
      let v6 = input[x6 + (step * 8u + 0u * 8u + 0u) * 32u];
      sum6 += v6;
      let v7 = input[x7 + (step * 8u + 0u * 8u + 0u) * 32u];
      sum7 += v7;
      let q0 = vec4<f32>((c0_0 >> vec4<u32>(0u * 4u)) & vec4<u32>(15u));
      d0_0 = fma(q0, v0, d0_0);
      d0_1 = fma(q0, v1, d0_1);
      d0_2 = fma(q0, v2, d0_2);
      d0_3 = fma(q0, v3, d0_3);
      d0_4 = fma(q0, v4, d0_4);
      d0_5 = fma(q0, v5, d0_5);
      d0_6 = fma(q0, v6, d0_6);
      d0_7 = fma(q0, v7, d0_7);
      let q1 = vec4<f32>((c1_0 >> vec4<u32>(0u * 4u)) & vec4<u32>(15u));
      d1_0 = fma(q1, v0, d1_0);
      d1_1 = fma(q1, v1, d1_1);
      d1_2 = fma(q1, v2, d1_2);
      d1_3 = fma(q1, v3, d1_3);
      d1_4 = fma(q1, v4, d1_4);
      d1_5 = fma(q1, v5, d1_5);
      d1_6 = fma(q1, v6, d1_6);
      d1_7 = fma(q1, v7, d1_7);
    }
    {
      let v0 = input[x0 + (step * 8u + 0u * 8u + 1u) * 32u];
      sum0 += v0;
      let v1 = input[x1 + (step * 8u + 0u * 8u + 1u) * 32u];
      sum1 += v1;
      let v2 = input[x2 + (step * 8u + 0u * 8u + 1u) * 32u];
      sum2 += v2;
      let v3 = input[x3 + (step * 8u + 0u * 8u + 1u) * 32u];
      sum3 += v3;
      let v4 = input[x4 + (step * 8u + 0u * 8u + 1u) * 32u];
      sum4 += v4;
      let v5 = input[x5 + (step * 8u + 0u * 8u + 1u) * 32u];
      sum5 += v5;
      let v6 = input[x6 + (step * 8u + 0u * 8u + 1u) * 32u];
      sum6 += v6;
      let v7 = input[x7 + (step * 8u + 0u * 8u + 1u) * 32u];
      sum7 += v7;
      let q0 = vec4<f32>((c0_0 >> vec4<u32>(1u * 4u)) & vec4<u32>(15u));
      d0_0 = fma(q0, v0, d0_0);
      d0_1 = fma(q0, v1, d0_1);
      d0_2 = fma(q0, v2, d0_2);
      d0_3 = fma(q0, v3, d0_3);
      d0_4 = fma(q0, v4, d0_4);
      d0_5 = fma(q0, v5, d0_5);
      d0_6 = fma(q0, v6, d0_6);
      d0_7 = fma(q0, v7, d0_7);
      let q1 = vec4<f32>((c1_0 >> vec4<u32>(1u * 4u)) & vec4<u32>(15u));
      d1_0 = fma(q1, v0, d1_0);
      d1_1 = fma(q1, v1, d1_1);
      d1_2 = fma(q1, v2, d1_2);
      d1_3 = fma(q1, v3, d1_3);
      d1_4 = fma(q1, v4, d1_4);
      d1_5 = fma(q1, v5, d1_5);
      d1_6 = fma(q1, v6, d1_6);
      d1_7 = fma(q1, v7, d1_7);
    }
    {
      let v0 = input[x0 + (step * 8u + 0u * 8u + 2u) * 32u];
      sum0 += v0;
      let v1 = input[x1 + (step * 8u + 0u * 8u + 2u) * 32u];
      sum1 += v1;
      let v2 = input[x2 + (step * 8u + 0u * 8u + 2u) * 32u];
      sum2 += v2;
      let v3 = input[x3 + (step * 8u + 0u * 8u + 2u) * 32u];
      sum3 += v3;
      let v4 = input[x4 + (step * 8u + 0u * 8u + 2u) * 32u];
      sum4 += v4;
      let v5 = input[x5 + (step * 8u + 0u * 8u + 2u) * 32u];
      sum5 += v5;
      let v6 = input[x6 + (step * 8u + 0u * 8u + 2u) * 32u];
      sum6 += v6;
      let v7 = input[x7 + (step * 8u + 0u * 8u + 2u) * 32u];
      sum7 += v7;
      let q0 = vec4<f32>((c0_0 >> vec4<u32>(2u * 4u)) & vec4<u32>(15u));
      d0_0 = fma(q0, v0, d0_0);
      d0_1 = fma(q0, v1, d0_1);
      d0_2 = fma(q0, v2, d0_2);
      d0_3 = fma(q0, v3, d0_3);
      d0_4 = fma(q0, v4, d0_4);
      d0_5 = fma(q0, v5, d0_5);
      d0_6 = fma(q0, v6, d0_6);
      d0_7 = fma(q0, v7, d0_7);
      let q1 = vec4<f32>((c1_0 >> vec4<u32>(2u * 4u)) & vec4<u32>(15u));
      d1_0 = fma(q1, v0, d1_0);
      d1_1 = fma(q1, v1, d1_1);
      d1_2 = fma(q1, v2, d1_2);
      d1_3 = fma(q1, v3, d1_3);
      d1_4 = fma(q1, v4, d1_4);
      d1_5 = fma(q1, v5, d1_5);
      d1_6 = fma(q1, v6, d1_6);
      d1_7 = fma(q1, v7, d1_7);
    }
    {
      let v0 = input[x0 + (step * 8u + 0u * 8u + 3u) * 32u];
      sum0 += v0;
      let v1 = input[x1 + (step * 8u + 0u * 8u + 3u) * 32u];
      sum1 += v1;
      let v2 = input[x2 + (step * 8u + 0u * 8u + 3u) * 32u];
      sum2 += v2;
      let v3 = input[x3 + (step * 8u + 0u * 8u + 3u) * 32u];
      sum3 += v3;
      let v4 = input[x4 + (step * 8u + 0u * 8u + 3u) * 32u];
      sum4 += v4;
      let v5 = input[x5 + (step * 8u + 0u * 8u + 3u) * 32u];
      sum5 += v5;
      let v6 = input[x6 + (step * 8u + 0u * 8u + 3u) * 32u];
      sum6 += v6;
      let v7 = input[x7 + (step * 8u + 0u * 8u + 3u) * 32u];
      sum7 += v7;
      let q0 = vec4<f32>((c0_0 >> vec4<u32>(3u * 4u)) & vec4<u32>(15u));
      d0_0 = fma(q0, v0, d0_0);
      d0_1 = fma(q0, v1, d0_1);
      d0_2 = fma(q0, v2, d0_2);
      d0_3 = fma(q0, v3, d0_3);
      d0_4 = fma(q0, v4, d0_4);
      d0_5 = fma(q0, v5, d0_5);
      d0_6 = fma(q0, v6, d0_6);
      d0_7 = fma(q0, v7, d0_7);
      let q1 = vec4<f32>((c1_0 >> vec4<u32>(3u * 4u)) & vec4<u32>(15u));
      d1_0 = fma(q1, v0, d1_0);
      d1_1 = fma(q1, v1, d1_1);
      d1_2 = fma(q1, v2, d1_2);
      d1_3 = fma(q1, v3, d1_3);
      d1_4 = fma(q1, v4, d1_4);
      d1_5 = fma(q1, v5, d1_5);
      d1_6 = fma(q1, v6, d1_6);
      d1_7 = fma(q1, v7, d1_7);
    }
    {
      let v0 = input[x0 + (step * 8u + 0u * 8u + 4u) * 32u];
      sum0 += v0;
      let v1 = input[x1 + (step * 8u + 0u * 8u + 4u) * 32u];
      sum1 += v1;
      let v2 = input[x2 + (step * 8u + 0u * 8u + 4u) * 32u];
      sum2 += v2;
      let v3 = input[x3 + (step * 8u + 0u * 8u + 4u) * 32u];
      sum3 += v3;
      let v4 = input[x4 + (step * 8u + 0u * 8u + 4u) * 32u];
      sum4 += v4;
      let v5 = input[x5 + (step * 8u + 0u * 8u + 4u) * 32u];
      sum5 += v5;
      let v6 = input[x6 + (step * 8u + 0u * 8u + 4u) * 32u];
      sum6 += v6;
      let v7 = input[x7 + (step * 8u + 0u * 8u + 4u) * 32u];
      sum7 += v7;
      let q0 = vec4<f32>((c0_0 >> vec4<u32>(4u * 4u)) & vec4<u32>(15u));
      d0_0 = fma(q0, v0, d0_0);
      d0_1 = fma(q0, v1, d0_1);
      d0_2 = fma(q0, v2, d0_2);
      d0_3 = fma(q0, v3, d0_3);
      d0_4 = fma(q0, v4, d0_4);
      d0_5 = fma(q0, v5, d0_5);
      d0_6 = fma(q0, v6, d0_6);
      d0_7 = fma(q0, v7, d0_7);
      let q1 = vec4<f32>((c1_0 >> vec4<u32>(4u * 4u)) & vec4<u32>(15u));
      d1_0 = fma(q1, v0, d1_0);
      d1_1 = fma(q1, v1, d1_1);
      d1_2 = fma(q1, v2, d1_2);
      d1_3 = fma(q1, v3, d1_3);
      d1_4 = fma(q1, v4, d1_4);
      d1_5 = fma(q1, v5, d1_5);
      d1_6 = fma(q1, v6, d1_6);
      d1_7 = fma(q1, v7, d1_7);
    }
    {
      let v0 = input[x0 + (step * 8u + 0u * 8u + 5u) * 32u];
      sum0 += v0;
      let v1 = input[x1 + (step * 8u + 0u * 8u + 5u) * 32u];
      sum1 += v1;
      let v2 = input[x2 + (step * 8u + 0u * 8u + 5u) * 32u];
      sum2 += v2;
      let v3 = input[x3 + (step * 8u + 0u * 8u + 5u) * 32u];
      sum3 += v3;
      let v4 = input[x4 + (step * 8u + 0u * 8u + 5u) * 32u];
      sum4 += v4;
      let v5 = input[x5 + (step * 8u + 0u * 8u + 5u) * 32u];
      sum5 += v5;
      let v6 = input[x6 + (step * 8u + 0u * 8u + 5u) * 32u];
      sum6 += v6;
      let v7 = input[x7 + (step * 8u + 0u * 8u + 5u) * 32u];
      sum7 += v7;
      let q0 = vec4<f32>((c0_0 >> vec4<u32>(5u * 4u)) & vec4<u32>(15u));
      d0_0 = fma(q0, v0, d0_0);
      d0_1 = fma(q0, v1, d0_1);
      d0_2 = fma(q0, v2, d0_2);
      d0_3 = fma(q0, v3, d0_3);
      d0_4 = fma(q0, v4, d0_4);
      d0_5 = fma(q0, v5, d0_5);
      d0_6 = fma(q0, v6, d0_6);
      d0_7 = fma(q0, v7, d0_7);
      let q1 = vec4<f32>((c1_0 >> vec4<u32>(5u * 4u)) & vec4<u32>(15u));
      d1_0 = fma(q1, v0, d1_0);
      d1_1 = fma(q1, v1, d1_1);
      d1_2 = fma(q1, v2, d1_2);
      d1_3 = fma(q1, v3, d1_3);
      d1_4 = fma(q1, v4, d1_4);
      d1_5 = fma(q1, v5, d1_5);
      d1_6 = fma(q1, v6, d1_6);
      d1_7 = fma(q1, v7, d1_7);
    }
    {
      let v0 = input[x0 + (step * 8u + 0u * 8u + 6u) * 32u];
      sum0 += v0;
      let v1 = input[x1 + (step * 8u + 0u * 8u + 6u) * 32u];
      sum1 += v1;
      let v2 = input[x2 + (step * 8u + 0u * 8u + 6u) * 32u];
      sum2 += v2;
      let v3 = input[x3 + (step * 8u + 0u * 8u + 6u) * 32u];
      sum3 += v3;
      let v4 = input[x4 + (step * 8u + 0u * 8u + 6u) * 32u];
      sum4 += v4;
      let v5 = input[x5 + (step * 8u + 0u * 8u + 6u) * 32u];
      sum5 += v5;
      let v6 = input[x6 + (step * 8u + 0u * 8u + 6u) * 32u];
      sum6 += v6;
      let v7 = input[x7 + (step * 8u + 0u * 8u + 6u) * 32u];
      sum7 += v7;
      let q0 = vec4<f32>((c0_0 >> vec4<u32>(6u * 4u)) & vec4<u32>(15u));
      d0_0 = fma(q0, v0, d0_0);
      d0_1 = fma(q0, v1, d0_1);
      d0_2 = fma(q0, v2, d0_2);
      d0_3 = fma(q0, v3, d0_3);
      d0_4 = fma(q0, v4, d0_4);
      d0_5 = fma(q0, v5, d0_5);
      d0_6 = fma(q0, v6, d0_6);
      d0_7 = fma(q0, v7, d0_7);
      let q1 = vec4<f32>((c1_0 >> vec4<u32>(6u * 4u)) & vec4<u32>(15u));
      d1_0 = fma(q1, v0, d1_0);
      d1_1 = fma(q1, v1, d1_1);
      d1_2 = fma(q1, v2, d1_2);
      d1_3 = fma(q1, v3, d1_3);
      d1_4 = fma(q1, v4, d1_4);
      d1_5 = fma(q1, v5, d1_5);
      d1_6 = fma(q1, v6, d1_6);
      d1_7 = fma(q1, v7, d1_7);
    }
    {
      let v0 = input[x0 + (step * 8u + 0u * 8u + 7u) * 32u];
      sum0 += v0;
      let v1 = input[x1 + (step * 8u + 0u * 8u + 7u) * 32u];
      sum1 += v1;
      let v2 = input[x2 + (step * 8u + 0u * 8u + 7u) * 32u];
      sum2 += v2;
      let v3 = input[x3 + (step * 8u + 0u * 8u + 7u) * 32u];
      sum3 += v3;
      let v4 = input[x4 + (step * 8u + 0u * 8u + 7u) * 32u];
      sum4 += v4;
      let v5 = input[x5 + (step * 8u + 0u * 8u + 7u) * 32u];
      sum5 += v5;
      let v6 = input[x6 + (step * 8u + 0u * 8u + 7u) * 32u];
      sum6 += v6;
      let v7 = input[x7 + (step * 8u + 0u * 8u + 7u) * 32u];
      sum7 += v7;
      let q0 = vec4<f32>((c0_0 >> vec4<u32>(7u * 4u)) & vec4<u32>(15u));
      d0_0 = fma(q0, v0, d0_0);
      d0_1 = fma(q0, v1, d0_1);
      d0_2 = fma(q0, v2, d0_2);
      d0_3 = fma(q0, v3, d0_3);
      d0_4 = fma(q0, v4, d0_4);
      d0_5 = fma(q0, v5, d0_5);
      d0_6 = fma(q0, v6, d0_6);
      d0_7 = fma(q0, v7, d0_7);
      let q1 = vec4<f32>((c1_0 >> vec4<u32>(7u * 4u)) & vec4<u32>(15u));
      d1_0 = fma(q1, v0, d1_0);
      d1_1 = fma(q1, v1, d1_1);
      d1_2 = fma(q1, v2, d1_2);
      d1_3 = fma(q1, v3, d1_3);
      d1_4 = fma(q1, v4, d1_4);
      d1_5 = fma(q1, v5, d1_5);
      d1_6 = fma(q1, v6, d1_6);
      d1_7 = fma(q1, v7, d1_7);
    }
    let at = min((step * 1024u + lane * 32u) / param(7u), param(6u) - 1u);
    {
      let pair = scales[w0 * param(6u) + at];
      let scale = bitcast<f32>(pair << 16u);
      let bias = bitcast<f32>(pair & 0xffff0000u);
      acc0_0 = fma(scale, lanes(d0_0), acc0_0);
      acc0_0 = fma(bias, lanes(sum0), acc0_0);
      acc0_1 = fma(scale, lanes(d0_1), acc0_1);
      acc0_1 = fma(bias, lanes(sum1), acc0_1);
      acc0_2 = fma(scale, lanes(d0_2), acc0_2);
      acc0_2 = fma(bias, lanes(sum2), acc0_2);
      acc0_3 = fma(scale, lanes(d0_3), acc0_3);
      acc0_3 = fma(bias, lanes(sum3), acc0_3);
      acc0_4 = fma(scale, lanes(d0_4), acc0_4);
      acc0_4 = fma(bias, lanes(sum4), acc0_4);
      acc0_5 = fma(scale, lanes(d0_5), acc0_5);
      acc0_5 = fma(bias, lanes(sum5), acc0_5);
      acc0_6 = fma(scale, lanes(d0_6), acc0_6);
      acc0_6 = fma(bias, lanes(sum6), acc0_6);
      acc0_7 = fma(scale, lanes(d0_7), acc0_7);
      acc0_7 = fma(bias, lanes(sum7), acc0_7);
    }
    {
      let pair = scales[w1 * param(6u) + at];
      let scale = bitcast<f32>(pair << 16u);
      let bias = bitcast<f32>(pair & 0xffff0000u);
      acc1_0 = fma(scale, lanes(d1_0), acc1_0);
      acc1_0 = fma(bias, lanes(sum0), acc1_0);
      acc1_1 = fma(scale, lanes(d1_1), acc1_1);
      acc1_1 = fma(bias, lanes(sum1), acc1_1);
      acc1_2 = fma(scale, lanes(d1_2), acc1_2);
      acc1_2 = fma(bias, lanes(sum2), acc1_2);
      acc1_3 = fma(scale, lanes(d1_3), acc1_3);
      acc1_3 = fma(bias, lanes(sum3), acc1_3);
      acc1_4 = fma(scale, lanes(d1_4), acc1_4);
      acc1_4 = fma(bias, lanes(sum4), acc1_4);
      acc1_5 = fma(scale, lanes(d1_5), acc1_5);
      acc1_5 = fma(bias, lanes(sum5), acc1_5);
      acc1_6 = fma(scale, lanes(d1_6), acc1_6);
      acc1_6 = fma(bias, lanes(sum6), acc1_6);
      acc1_7 = fma(scale, lanes(d1_7), acc1_7);
      acc1_7 = fma(bias, lanes(sum7), acc1_7);
    }
  }
  partial[(0u * 8u + 0u) * 128u + thread] = acc0_0;
  partial[(0u * 8u + 1u) * 128u + thread] = acc0_1;
  partial[(0u * 8u + 2u) * 128u + thread] = acc0_2;
  partial[(0u * 8u + 3u) * 128u + thread] = acc0_3;
  partial[(0u * 8u + 4u) * 128u + thread] = acc0_4;
  partial[(0u * 8u + 5u) * 128u + thread] = acc0_5;
  partial[(0u * 8u + 6u) * 128u + thread] = acc0_6;
  partial[(0u * 8u + 7u) * 128u + thread] = acc0_7;
  partial[(1u * 8u + 0u) * 128u + thread] = acc1_0;
  partial[(1u * 8u + 1u) * 128u + thread] = acc1_1;
  partial[(1u * 8u + 2u) * 128u + thread] = acc1_2;
  partial[(1u * 8u + 3u) * 128u + thread] = acc1_3;
  partial[(1u * 8u + 4u) * 128u + thread] = acc1_4;
  partial[(1u * 8u + 5u) * 128u + thread] = acc1_5;
  partial[(1u * 8u + 6u) * 128u + thread] = acc1_6;
  partial[(1u * 8u + 7u) * 128u + thread] = acc1_7;
  for (var half = 16u; half > 0u; half /= 2u) {
    workgroupBarrier();
    if (lane < half) {
      for (var i = thread; i < 2048u; i += 128u) { partial[i] += partial[i + half]; }
    }
  }
  workgroupBarrier();
  // Lane n · ROWS + r of a row's first slice adds the slices in order and writes output (n, r).
  if (slice == 0u && lane < 2u * 8u) {
    var sum = 0.0;
    for (var i = 0u; i < 1u; i++) {
      sum += partial[lane * 128u + (warp + i) * 32u];
    }
    let n = firstN + lane / 8u;
    let row = firstRow + lane % 8u;
    if (n < wRows && row < rows) {
      let at = row * param(3u) + param(8u) + n;
      if (param(4u) != 0u) { sum += output[at]; }
      output[at] = sum;
    }
  }
}
