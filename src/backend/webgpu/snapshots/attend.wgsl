// ATTEND: softmax(q·K / √dim)·V of a block of neighbouring rows of one segment, for the query heads of one KV
// head, over a span of keys; one workgroup a (block, KV head, span). Called for every pass; merge.wgsl ends it.
//
// A layer's page: keys [KV head, dim / 4, 64 rows] and values [KV head, 64 rows, dim / 4] of vec4.
// Queries are [row, head, dim / 4]. A workgroup takes up to 8 rows × 6 heads, four
// queries a vec4 ("quad") of `weights`; what stands past the block's queries repeats its last and is not stored.
//
// Exactness: by absolute key position alone. Tiles of 64 keys from 0; in a tile
//   score = ((part 0 + part 1) + …) · (1 / √dim), a part is one fma chain over dim / 4 dims, ascending;
//   top = max of scores; weight = exp(score - top); sum = 4 chains over keys l, l + 4, …, added in order;
//   out = one fma chain over the tile's keys, ascending.
// Tiles of a chunk of 512 keys combine in order, then chunks in order: combine (P, S, O) with (p, s, o) is
//   T = max(P, p); f = exp(P - T); e = exp(p - T); S = fma(S, f, s·e); O = fma(O, f, o·e); P = T.
// A workgroup combines what its span holds and merge.wgsl the rest, by the same expressions: spans are one tile,
// one chunk, or everything (then partial 0 is the chunk's and partial 1 the row's), and bits don't depend on it.
// A key past a row's own position changes nothing of it, whatever it holds. Accumulators are f32.
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
// Segment record: first row, rows, state slot, next slot, offset of its page table; the conv history that
// is read and the one that is written; 1 for a window.
fn segmentWord(segment: u32, word: u32) -> u32 { return passWords[passWords[7] + segment * 8u + word]; }
fn pageOf(segment: u32, position: u32) -> u32 {
  return passWords[segmentWord(segment, 4u) + position / 64u];
}
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

@group(0) @binding(2) var<storage, read> query: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> keys: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> values: array<vec4<f32>>;
// [row, head, partial, dim / 4] and [row, head, partial] of (top, sum).
@group(0) @binding(5) var<storage, read_write> outs: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read_write> stats: array<vec2<f32>>;

// Scores, then weights, [key, quad]; the odd stride keeps columns in different banks.
var<workgroup> weights: array<vec4<f32>, 64 * 13>;
var<workgroup> lanes: array<vec4<f32>, 4 * 12>;
var<workgroup> fades: array<vec4<f32>, 12>;
var<workgroup> gains: array<vec4<f32>, 12>;

// Below every score; a masked key's weight is set to zero all the same.
const lowest = -3.0e38;

struct Block { firstRow: u32, rows: u32, firstHead: u32, heads: u32, firstCount: u32, partials: u32 }

fn queryRow(block: Block, q: u32) -> u32 {
  return block.firstRow + min(q / 6u, block.rows - 1u);
}
fn queryHead(block: Block, q: u32) -> u32 {
  return block.firstHead + min(q % 6u, block.heads - 1u);
}
fn isQuery(block: Block, q: u32) -> bool {
  return q / 6u < block.rows && q % 6u < block.heads;
}
// Keys of a tile that each query of a quad sees.
fn seen(block: Block, quad: u32, tile: u32) -> vec4<u32> {
  let rows = (vec4<u32>(0u, 1u, 2u, 3u) + quad * 4u) / 6u;
  let counts = block.firstCount + min(rows, vec4<u32>(block.rows - 1u));
  let first = vec4<u32>(tile * 64u);
  return min(max(counts, first) - first, vec4<u32>(64u));
}
fn partialOf(block: Block, q: u32, partial: u32) -> u32 {
  return (queryRow(block, q) * 24u + queryHead(block, q)) * block.partials + partial;
}

// params: 0 q stride (vec4)
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let kvHead = group.y / 1u;
  let firstOfHeads = group.y % 1u * 6u;
  let firstRow = blockWord(group.x, 0u);
  let block = Block(
    firstRow,
    blockWord(group.x, 1u),
    kvHead * (24u / 4u) + firstOfHeads,
    min(6u, 24u / 4u - firstOfHeads),
    rowPosition(firstRow) + 1u,
    attentionPartials(),
  );
  let segment = rowSegment(firstRow);
  let span = attentionSpan();
  let whole = span > 8u;
  let firstTile = group.z * span;
  let keyCount = block.firstCount + block.rows - 1u;
  let endTile = min(firstTile + span, (keyCount + 64u - 1u) / 64u);

  // Scores: a thread has a part of the dims, 3 quads and every 16-th key.
  let part = thread / 64u;
  let keyLane = thread % 16u;
  let firstQuad = thread % 64u / 16u * 3u;
  let q0_0 = queryRow(block, (firstQuad + 0u) * 4u + 0u) * param(0u) +
    queryHead(block, (firstQuad + 0u) * 4u + 0u) * 64u + part * 16u;
  let q0_1 = queryRow(block, (firstQuad + 0u) * 4u + 1u) * param(0u) +
    queryHead(block, (firstQuad + 0u) * 4u + 1u) * 64u + part * 16u;
  let q0_2 = queryRow(block, (firstQuad + 0u) * 4u + 2u) * param(0u) +
    queryHead(block, (firstQuad + 0u) * 4u + 2u) * 64u + part * 16u;
  let q0_3 = queryRow(block, (firstQuad + 0u) * 4u + 3u) * param(0u) +
    queryHead(block, (firstQuad + 0u) * 4u + 3u) * 64u + part * 16u;
  let q1_0 = queryRow(block, (firstQuad + 1u) * 4u + 0u) * param(0u) +
    queryHead(block, (firstQuad + 1u) * 4u + 0u) * 64u + part * 16u;
  let q1_1 = queryRow(block, (firstQuad + 1u) * 4u + 1u) * param(0u) +
    queryHead(block, (firstQuad + 1u) * 4u + 1u) * 64u + part * 16u;
  let q1_2 = queryRow(block, (firstQuad + 1u) * 4u + 2u) * param(0u) +
    queryHead(block, (firstQuad + 1u) * 4u + 2u) * 64u + part * 16u;
  let q1_3 = queryRow(block, (firstQuad + 1u) * 4u + 3u) * param(0u) +
    queryHead(block, (firstQuad + 1u) * 4u + 3u) * 64u + part * 16u;
  let q2_0 = queryRow(block, (firstQuad + 2u) * 4u + 0u) * param(0u) +
    queryHead(block, (firstQuad + 2u) * 4u + 0u) * 64u + part * 16u;
  let q2_1 = queryRow(block, (firstQuad + 2u) * 4u + 1u) * param(0u) +
    queryHead(block, (firstQuad + 2u) * 4u + 1u) * 64u + part * 16u;
  let q2_2 = queryRow(block, (firstQuad + 2u) * 4u + 2u) * param(0u) +
    queryHead(block, (firstQuad + 2u) * 4u + 2u) * 64u + part * 16u;
  let q2_3 = queryRow(block, (firstQuad + 2u) * 4u + 3u) * param(0u) +
    queryHead(block, (firstQuad + 2u) * 4u + 3u) * 64u + part * 16u;
  // Softmax: a thread has a quad and every fourth key. The first of a quad holds its top and sum.
  let softQuad = thread / 4u;
  let softLane = thread % 4u;
  var top = vec4<f32>(0.0);
  var sum = vec4<f32>(0.0);
  var rowTop = vec4<f32>(0.0);
  var rowSum = vec4<f32>(0.0);
  // Values: a thread has four dims and 3 quads.
  let dim = thread % 64u;
  let firstOut = thread / 64u * 3u;

  for (var tile = firstTile; tile < endTile; tile++) {
    let page = (pageOf(segment, tile * 64u) * 4u + kvHead) * 64u * 64u;
    let fresh = tile % 8u == 0u || tile == firstTile;
    {
      var s0_0 = vec4<f32>(0.0);
      var s0_1 = vec4<f32>(0.0);
      var s0_2 = vec4<f32>(0.0);
      var s0_3 = vec4<f32>(0.0);
      var s1_0 = vec4<f32>(0.0);
      var s1_1 = vec4<f32>(0.0);
      var s1_2 = vec4<f32>(0.0);
      var s1_3 = vec4<f32>(0.0);
      var s2_0 = vec4<f32>(0.0);
      var s2_1 = vec4<f32>(0.0);
      var s2_2 = vec4<f32>(0.0);
      var s2_3 = vec4<f32>(0.0);
      let keyAt = page + part * 16u * 64u + keyLane;
      for (var step = 0u; step < 16u; step += 1u) {
        let k0_0 = vec4<f32>(keys[keyAt + (step + 0u) * 64u + 0u * 16u]);
        let k0_1 = vec4<f32>(keys[keyAt + (step + 0u) * 64u + 1u * 16u]);
        let k0_2 = vec4<f32>(keys[keyAt + (step + 0u) * 64u + 2u * 16u]);
        let k0_3 = vec4<f32>(keys[keyAt + (step + 0u) * 64u + 3u * 16u]);
        {
          var x0 = vec4<f32>(0.0);
          var x1 = vec4<f32>(0.0);
          var x2 = vec4<f32>(0.0);
          var x3 = vec4<f32>(0.0);
          x0 = query[q0_0 + step + 0u];
          x1 = query[q0_1 + step + 0u];
          x2 = query[q0_2 + step + 0u];
          x3 = query[q0_3 + step + 0u];
          s0_0[0] = fma(x0.x, k0_0.x, s0_0[0]);
          s0_0[0] = fma(x0.y, k0_0.y, s0_0[0]);
          s0_0[0] = fma(x0.z, k0_0.z, s0_0[0]);
          s0_0[0] = fma(x0.w, k0_0.w, s0_0[0]);
          s0_0[1] = fma(x1.x, k0_0.x, s0_0[1]);
          s0_0[1] = fma(x1.y, k0_0.y, s0_0[1]);
          s0_0[1] = fma(x1.z, k0_0.z, s0_0[1]);
          s0_0[1] = fma(x1.w, k0_0.w, s0_0[1]);
          s0_0[2] = fma(x2.x, k0_0.x, s0_0[2]);
          s0_0[2] = fma(x2.y, k0_0.y, s0_0[2]);
          s0_0[2] = fma(x2.z, k0_0.z, s0_0[2]);
          s0_0[2] = fma(x2.w, k0_0.w, s0_0[2]);
          s0_0[3] = fma(x3.x, k0_0.x, s0_0[3]);
          s0_0[3] = fma(x3.y, k0_0.y, s0_0[3]);
          s0_0[3] = fma(x3.z, k0_0.z, s0_0[3]);
          s0_0[3] = fma(x3.w, k0_0.w, s0_0[3]);
          s0_1[0] = fma(x0.x, k0_1.x, s0_1[0]);
          s0_1[0] = fma(x0.y, k0_1.y, s0_1[0]);
          s0_1[0] = fma(x0.z, k0_1.z, s0_1[0]);
          s0_1[0] = fma(x0.w, k0_1.w, s0_1[0]);
          s0_1[1] = fma(x1.x, k0_1.x, s0_1[1]);
          s0_1[1] = fma(x1.y, k0_1.y, s0_1[1]);
          s0_1[1] = fma(x1.z, k0_1.z, s0_1[1]);
          s0_1[1] = fma(x1.w, k0_1.w, s0_1[1]);
          s0_1[2] = fma(x2.x, k0_1.x, s0_1[2]);
          s0_1[2] = fma(x2.y, k0_1.y, s0_1[2]);
          s0_1[2] = fma(x2.z, k0_1.z, s0_1[2]);
          s0_1[2] = fma(x2.w, k0_1.w, s0_1[2]);
          s0_1[3] = fma(x3.x, k0_1.x, s0_1[3]);
          s0_1[3] = fma(x3.y, k0_1.y, s0_1[3]);
          s0_1[3] = fma(x3.z, k0_1.z, s0_1[3]);
          s0_1[3] = fma(x3.w, k0_1.w, s0_1[3]);
          s0_2[0] = fma(x0.x, k0_2.x, s0_2[0]);
          s0_2[0] = fma(x0.y, k0_2.y, s0_2[0]);
          s0_2[0] = fma(x0.z, k0_2.z, s0_2[0]);
          s0_2[0] = fma(x0.w, k0_2.w, s0_2[0]);
          s0_2[1] = fma(x1.x, k0_2.x, s0_2[1]);
          s0_2[1] = fma(x1.y, k0_2.y, s0_2[1]);
          s0_2[1] = fma(x1.z, k0_2.z, s0_2[1]);
          s0_2[1] = fma(x1.w, k0_2.w, s0_2[1]);
          s0_2[2] = fma(x2.x, k0_2.x, s0_2[2]);
          s0_2[2] = fma(x2.y, k0_2.y, s0_2[2]);
          s0_2[2] = fma(x2.z, k0_2.z, s0_2[2]);
          s0_2[2] = fma(x2.w, k0_2.w, s0_2[2]);
          s0_2[3] = fma(x3.x, k0_2.x, s0_2[3]);
          s0_2[3] = fma(x3.y, k0_2.y, s0_2[3]);
          s0_2[3] = fma(x3.z, k0_2.z, s0_2[3]);
          s0_2[3] = fma(x3.w, k0_2.w, s0_2[3]);
          s0_3[0] = fma(x0.x, k0_3.x, s0_3[0]);
          s0_3[0] = fma(x0.y, k0_3.y, s0_3[0]);
          s0_3[0] = fma(x0.z, k0_3.z, s0_3[0]);
          s0_3[0] = fma(x0.w, k0_3.w, s0_3[0]);
          s0_3[1] = fma(x1.x, k0_3.x, s0_3[1]);
          s0_3[1] = fma(x1.y, k0_3.y, s0_3[1]);
          s0_3[1] = fma(x1.z, k0_3.z, s0_3[1]);
          s0_3[1] = fma(x1.w, k0_3.w, s0_3[1]);
          s0_3[2] = fma(x2.x, k0_3.x, s0_3[2]);
          s0_3[2] = fma(x2.y, k0_3.y, s0_3[2]);
          s0_3[2] = fma(x2.z, k0_3.z, s0_3[2]);
          s0_3[2] = fma(x2.w, k0_3.w, s0_3[2]);
          s0_3[3] = fma(x3.x, k0_3.x, s0_3[3]);
          s0_3[3] = fma(x3.y, k0_3.y, s0_3[3]);
          s0_3[3] = fma(x3.z, k0_3.z, s0_3[3]);
          s0_3[3] = fma(x3.w, k0_3.w, s0_3[3]);
        }
        {
          var x0 = vec4<f32>(0.0);
          var x1 = vec4<f32>(0.0);
          var x2 = vec4<f32>(0.0);
          var x3 = vec4<f32>(0.0);
          x0 = query[q1_0 + step + 0u];
          x1 = query[q1_1 + step + 0u];
          x2 = query[q1_2 + step + 0u];
          x3 = query[q1_3 + step + 0u];
          s1_0[0] = fma(x0.x, k0_0.x, s1_0[0]);
          s1_0[0] = fma(x0.y, k0_0.y, s1_0[0]);
          s1_0[0] = fma(x0.z, k0_0.z, s1_0[0]);
          s1_0[0] = fma(x0.w, k0_0.w, s1_0[0]);
          s1_0[1] = fma(x1.x, k0_0.x, s1_0[1]);
          s1_0[1] = fma(x1.y, k0_0.y, s1_0[1]);
          s1_0[1] = fma(x1.z, k0_0.z, s1_0[1]);
          s1_0[1] = fma(x1.w, k0_0.w, s1_0[1]);
          s1_0[2] = fma(x2.x, k0_0.x, s1_0[2]);
          s1_0[2] = fma(x2.y, k0_0.y, s1_0[2]);
          s1_0[2] = fma(x2.z, k0_0.z, s1_0[2]);
          s1_0[2] = fma(x2.w, k0_0.w, s1_0[2]);
          s1_0[3] = fma(x3.x, k0_0.x, s1_0[3]);
          s1_0[3] = fma(x3.y, k0_0.y, s1_0[3]);
          s1_0[3] = fma(x3.z, k0_0.z, s1_0[3]);
          s1_0[3] = fma(x3.w, k0_0.w, s1_0[3]);
          s1_1[0] = fma(x0.x, k0_1.x, s1_1[0]);
          s1_1[0] = fma(x0.y, k0_1.y, s1_1[0]);
          s1_1[0] = fma(x0.z, k0_1.z, s1_1[0]);
          s1_1[0] = fma(x0.w, k0_1.w, s1_1[0]);
          s1_1[1] = fma(x1.x, k0_1.x, s1_1[1]);
          s1_1[1] = fma(x1.y, k0_1.y, s1_1[1]);
          s1_1[1] = fma(x1.z, k0_1.z, s1_1[1]);
          s1_1[1] = fma(x1.w, k0_1.w, s1_1[1]);
          s1_1[2] = fma(x2.x, k0_1.x, s1_1[2]);
          s1_1[2] = fma(x2.y, k0_1.y, s1_1[2]);
          s1_1[2] = fma(x2.z, k0_1.z, s1_1[2]);
          s1_1[2] = fma(x2.w, k0_1.w, s1_1[2]);
          s1_1[3] = fma(x3.x, k0_1.x, s1_1[3]);
          s1_1[3] = fma(x3.y, k0_1.y, s1_1[3]);
          s1_1[3] = fma(x3.z, k0_1.z, s1_1[3]);
          s1_1[3] = fma(x3.w, k0_1.w, s1_1[3]);
          s1_2[0] = fma(x0.x, k0_2.x, s1_2[0]);
          s1_2[0] = fma(x0.y, k0_2.y, s1_2[0]);
          s1_2[0] = fma(x0.z, k0_2.z, s1_2[0]);
          s1_2[0] = fma(x0.w, k0_2.w, s1_2[0]);
          s1_2[1] = fma(x1.x, k0_2.x, s1_2[1]);
          s1_2[1] = fma(x1.y, k0_2.y, s1_2[1]);
          s1_2[1] = fma(x1.z, k0_2.z, s1_2[1]);
          s1_2[1] = fma(x1.w, k0_2.w, s1_2[1]);
          s1_2[2] = fma(x2.x, k0_2.x, s1_2[2]);
          s1_2[2] = fma(x2.y, k0_2.y, s1_2[2]);
          s1_2[2] = fma(x2.z, k0_2.z, s1_2[2]);
          s1_2[2] = fma(x2.w, k0_2.w, s1_2[2]);
          s1_2[3] = fma(x3.x, k0_2.x, s1_2[3]);
          s1_2[3] = fma(x3.y, k0_2.y, s1_2[3]);
          s1_2[3] = fma(x3.z, k0_2.z, s1_2[3]);
          s1_2[3] = fma(x3.w, k0_2.w, s1_2[3]);
          s1_3[0] = fma(x0.x, k0_3.x, s1_3[0]);
          s1_3[0] = fma(x0.y, k0_3.y, s1_3[0]);
          s1_3[0] = fma(x0.z, k0_3.z, s1_3[0]);
          s1_3[0] = fma(x0.w, k0_3.w, s1_3[0]);
          s1_3[1] = fma(x1.x, k0_3.x, s1_3[1]);
          s1_3[1] = fma(x1.y, k0_3.y, s1_3[1]);
          s1_3[1] = fma(x1.z, k0_3.z, s1_3[1]);
          s1_3[1] = fma(x1.w, k0_3.w, s1_3[1]);
          s1_3[2] = fma(x2.x, k0_3.x, s1_3[2]);
          s1_3[2] = fma(x2.y, k0_3.y, s1_3[2]);
          s1_3[2] = fma(x2.z, k0_3.z, s1_3[2]);
          s1_3[2] = fma(x2.w, k0_3.w, s1_3[2]);
          s1_3[3] = fma(x3.x, k0_3.x, s1_3[3]);
          s1_3[3] = fma(x3.y, k0_3.y, s1_3[3]);
          s1_3[3] = fma(x3.z, k0_3.z, s1_3[3]);
          s1_3[3] = fma(x3.w, k0_3.w, s1_3[3]);
        }
        {
          var x0 = vec4<f32>(0.0);
          var x1 = vec4<f32>(0.0);
          var x2 = vec4<f32>(0.0);
          var x3 = vec4<f32>(0.0);
          x0 = query[q2_0 + step + 0u];
          x1 = query[q2_1 + step + 0u];
          x2 = query[q2_2 + step + 0u];
          x3 = query[q2_3 + step + 0u];
          s2_0[0] = fma(x0.x, k0_0.x, s2_0[0]);
          s2_0[0] = fma(x0.y, k0_0.y, s2_0[0]);
          s2_0[0] = fma(x0.z, k0_0.z, s2_0[0]);
          s2_0[0] = fma(x0.w, k0_0.w, s2_0[0]);
          s2_0[1] = fma(x1.x, k0_0.x, s2_0[1]);
          s2_0[1] = fma(x1.y, k0_0.y, s2_0[1]);
          s2_0[1] = fma(x1.z, k0_0.z, s2_0[1]);
          s2_0[1] = fma(x1.w, k0_0.w, s2_0[1]);
          s2_0[2] = fma(x2.x, k0_0.x, s2_0[2]);
          s2_0[2] = fma(x2.y, k0_0.y, s2_0[2]);
          s2_0[2] = fma(x2.z, k0_0.z, s2_0[2]);
          s2_0[2] = fma(x2.w, k0_0.w, s2_0[2]);
          s2_0[3] = fma(x3.x, k0_0.x, s2_0[3]);
          s2_0[3] = fma(x3.y, k0_0.y, s2_0[3]);
          s2_0[3] = fma(x3.z, k0_0.z, s2_0[3]);
          s2_0[3] = fma(x3.w, k0_0.w, s2_0[3]);
          s2_1[0] = fma(x0.x, k0_1.x, s2_1[0]);
          s2_1[0] = fma(x0.y, k0_1.y, s2_1[0]);
          s2_1[0] = fma(x0.z, k0_1.z, s2_1[0]);
          s2_1[0] = fma(x0.w, k0_1.w, s2_1[0]);
          s2_1[1] = fma(x1.x, k0_1.x, s2_1[1]);
          s2_1[1] = fma(x1.y, k0_1.y, s2_1[1]);
          s2_1[1] = fma(x1.z, k0_1.z, s2_1[1]);
          s2_1[1] = fma(x1.w, k0_1.w, s2_1[1]);
          s2_1[2] = fma(x2.x, k0_1.x, s2_1[2]);
          s2_1[2] = fma(x2.y, k0_1.y, s2_1[2]);
          s2_1[2] = fma(x2.z, k0_1.z, s2_1[2]);
          s2_1[2] = fma(x2.w, k0_1.w, s2_1[2]);
          s2_1[3] = fma(x3.x, k0_1.x, s2_1[3]);
          s2_1[3] = fma(x3.y, k0_1.y, s2_1[3]);
          s2_1[3] = fma(x3.z, k0_1.z, s2_1[3]);
          s2_1[3] = fma(x3.w, k0_1.w, s2_1[3]);
          s2_2[0] = fma(x0.x, k0_2.x, s2_2[0]);
          s2_2[0] = fma(x0.y, k0_2.y, s2_2[0]);
          s2_2[0] = fma(x0.z, k0_2.z, s2_2[0]);
          s2_2[0] = fma(x0.w, k0_2.w, s2_2[0]);
          s2_2[1] = fma(x1.x, k0_2.x, s2_2[1]);
          s2_2[1] = fma(x1.y, k0_2.y, s2_2[1]);
          s2_2[1] = fma(x1.z, k0_2.z, s2_2[1]);
          s2_2[1] = fma(x1.w, k0_2.w, s2_2[1]);
          s2_2[2] = fma(x2.x, k0_2.x, s2_2[2]);
          s2_2[2] = fma(x2.y, k0_2.y, s2_2[2]);
          s2_2[2] = fma(x2.z, k0_2.z, s2_2[2]);
          s2_2[2] = fma(x2.w, k0_2.w, s2_2[2]);
          s2_2[3] = fma(x3.x, k0_2.x, s2_2[3]);
          s2_2[3] = fma(x3.y, k0_2.y, s2_2[3]);
          s2_2[3] = fma(x3.z, k0_2.z, s2_2[3]);
          s2_2[3] = fma(x3.w, k0_2.w, s2_2[3]);
          s2_3[0] = fma(x0.x, k0_3.x, s2_3[0]);
          s2_3[0] = fma(x0.y, k0_3.y, s2_3[0]);
          s2_3[0] = fma(x0.z, k0_3.z, s2_3[0]);
          s2_3[0] = fma(x0.w, k0_3.w, s2_3[0]);
          s2_3[1] = fma(x1.x, k0_3.x, s2_3[1]);
          s2_3[1] = fma(x1.y, k0_3.y, s2_3[1]);
          s2_3[1] = fma(x1.z, k0_3.z, s2_3[1]);
          s2_3[1] = fma(x1.w, k0_3.w, s2_3[1]);
          s2_3[2] = fma(x2.x, k0_3.x, s2_3[2]);
          s2_3[2] = fma(x2.y, k0_3.y, s2_3[2]);
          s2_3[2] = fma(x2.z, k0_3.z, s2_3[2]);
          s2_3[2] = fma(x2.w, k0_3.w, s2_3[2]);
          s2_3[3] = fma(x3.x, k0_3.x, s2_3[3]);
          s2_3[3] = fma(x3.y, k0_3.y, s2_3[3]);
          s2_3[3] = fma(x3.z, k0_3.z, s2_3[3]);
          s2_3[3] = fma(x3.w, k0_3.w, s2_3[3]);
        }
      }
      for (var p = 0u; p < 4u; p++) {
        if (part == p) {
          {
            let at = (keyLane + 0u * 16u) * 13u + firstQuad + 0u;
            weights[at] = select(weights[at] + s0_0, s0_0, p == 0u);
          }
          {
            let at = (keyLane + 0u * 16u) * 13u + firstQuad + 1u;
            weights[at] = select(weights[at] + s1_0, s1_0, p == 0u);
          }
          {
            let at = (keyLane + 0u * 16u) * 13u + firstQuad + 2u;
            weights[at] = select(weights[at] + s2_0, s2_0, p == 0u);
          }
          {
            let at = (keyLane + 1u * 16u) * 13u + firstQuad + 0u;
            weights[at] = select(weights[at] + s0_1, s0_1, p == 0u);
          }
          {
            let at = (keyLane + 1u * 16u) * 13u + firstQuad + 1u;
            weights[at] = select(weights[at] + s1_1, s1_1, p == 0u);
          }
          {
            let at = (keyLane + 1u * 16u) * 13u + firstQuad + 2u;
            weights[at] = select(weights[at] + s2_1, s2_1, p == 0u);
          }
          {
            let at = (keyLane + 2u * 16u) * 13u + firstQuad + 0u;
            weights[at] = select(weights[at] + s0_2, s0_2, p == 0u);
          }
          {
            let at = (keyLane + 2u * 16u) * 13u + firstQuad + 1u;
            weights[at] = select(weights[at] + s1_2, s1_2, p == 0u);
          }
          {
            let at = (keyLane + 2u * 16u) * 13u + firstQuad + 2u;
            weights[at] = select(weights[at] + s2_2, s2_2, p == 0u);
          }
          {
            let at = (keyLane + 3u * 16u) * 13u + firstQuad + 0u;
            weights[at] = select(weights[at] + s0_3, s0_3, p == 0u);
          }
          {
            let at = (keyLane + 3u * 16u) * 13u + firstQuad + 1u;
            weights[at] = select(weights[at] + s1_3, s1_3, p == 0u);
          }
          {
            let at = (keyLane + 3u * 16u) * 13u + firstQuad + 2u;
            weights[at] = select(weights[at] + s2_3, s2_3, p == 0u);
          }
        }
        workgroupBarrier();
      }
    }
    let live = seen(block, softQuad, tile);
    var tileTop = vec4<f32>(lowest);
    if (softQuad < 12u) {
      for (var key = softLane; key < 64u; key += 4u) {
        let at = key * 13u + softQuad;
        let score = weights[at] * (1.0 / sqrt(f32(256u)));
        weights[at] = score;
        tileTop = max(tileTop, select(vec4<f32>(lowest), score, vec4<u32>(key) < live));
      }
      lanes[thread] = tileTop;
    }
    workgroupBarrier();
    var laneSum = vec4<f32>(0.0);
    if (softQuad < 12u) {
      for (var i = 0u; i < 4u; i++) { tileTop = max(tileTop, lanes[softQuad * 4u + i]); }
      for (var key = softLane; key < 64u; key += 4u) {
        let at = key * 13u + softQuad;
        let weight = select(vec4<f32>(0.0), exp(weights[at] - tileTop), vec4<u32>(key) < live);
        weights[at] = weight;
        laneSum += weight;
      }
    }
    workgroupBarrier();
    if (softQuad < 12u) { lanes[thread] = laneSum; }
    workgroupBarrier();
    if (softQuad < 12u && softLane == 0u) {
      var tileSum = laneSum;
      for (var i = 1u; i < 4u; i++) { tileSum += lanes[thread + i]; }
      let some = live > vec4<u32>(0u);
      let next = max(top, tileTop);
      let fade = exp(top - next);
      let gain = exp(tileTop - next);
      fades[softQuad] = fade;
      gains[softQuad] = gain;
      if (fresh) {
        top = tileTop;
        sum = tileSum;
      } else {
        sum = select(sum, fma(sum, fade, tileSum * gain), some);
        top = select(top, next, some);
      }
    }

    var o0_0 = vec4<f32>(0.0);
    var o0_1 = vec4<f32>(0.0);
    var o0_2 = vec4<f32>(0.0);
    var o0_3 = vec4<f32>(0.0);
    var o1_0 = vec4<f32>(0.0);
    var o1_1 = vec4<f32>(0.0);
    var o1_2 = vec4<f32>(0.0);
    var o1_3 = vec4<f32>(0.0);
    var o2_0 = vec4<f32>(0.0);
    var o2_1 = vec4<f32>(0.0);
    var o2_2 = vec4<f32>(0.0);
    var o2_3 = vec4<f32>(0.0);
    if (firstOut < 12u) {
      let valueAt = page + dim;
      // Keys of this tile that the first row sees, and the last.
      let all = min(max(block.firstCount, tile * 64u) - tile * 64u, 64u);
      let most = min(keyCount - tile * 64u, 64u);
      var key = 0u;
      for (; key + 4u <= all; key += 4u) {
        let v0 = vec4<f32>(values[valueAt + min(key + 0u, most - 1u) * 64u]);
        let v1 = vec4<f32>(values[valueAt + min(key + 1u, most - 1u) * 64u]);
        let v2 = vec4<f32>(values[valueAt + min(key + 2u, most - 1u) * 64u]);
        let v3 = vec4<f32>(values[valueAt + min(key + 3u, most - 1u) * 64u]);
        {
          let weight = weights[min(key + 0u, 64u - 1u) * 13u + min(firstOut + 0u, 12u - 1u)];
          o0_0 = fma(vec4<f32>(weight[0]), v0, o0_0);
          o0_1 = fma(vec4<f32>(weight[1]), v0, o0_1);
          o0_2 = fma(vec4<f32>(weight[2]), v0, o0_2);
          o0_3 = fma(vec4<f32>(weight[3]), v0, o0_3);
        }
        {
          let weight = weights[min(key + 0u, 64u - 1u) * 13u + min(firstOut + 1u, 12u - 1u)];
          o1_0 = fma(vec4<f32>(weight[0]), v0, o1_0);
          o1_1 = fma(vec4<f32>(weight[1]), v0, o1_1);
          o1_2 = fma(vec4<f32>(weight[2]), v0, o1_2);
          o1_3 = fma(vec4<f32>(weight[3]), v0, o1_3);
        }
        {
          let weight = weights[min(key + 0u, 64u - 1u) * 13u + min(firstOut + 2u, 12u - 1u)];
          o2_0 = fma(vec4<f32>(weight[0]), v0, o2_0);
          o2_1 = fma(vec4<f32>(weight[1]), v0, o2_1);
          o2_2 = fma(vec4<f32>(weight[2]), v0, o2_2);
          o2_3 = fma(vec4<f32>(weight[3]), v0, o2_3);
        }
        {
          let weight = weights[min(key + 1u, 64u - 1u) * 13u + min(firstOut + 0u, 12u - 1u)];
          o0_0 = fma(vec4<f32>(weight[0]), v1, o0_0);
          o0_1 = fma(vec4<f32>(weight[1]), v1, o0_1);
          o0_2 = fma(vec4<f32>(weight[2]), v1, o0_2);
          o0_3 = fma(vec4<f32>(weight[3]), v1, o0_3);
        }
        {
          let weight = weights[min(key + 1u, 64u - 1u) * 13u + min(firstOut + 1u, 12u - 1u)];
          o1_0 = fma(vec4<f32>(weight[0]), v1, o1_0);
          o1_1 = fma(vec4<f32>(weight[1]), v1, o1_1);
          o1_2 = fma(vec4<f32>(weight[2]), v1, o1_2);
          o1_3 = fma(vec4<f32>(weight[3]), v1, o1_3);
        }
        {
          let weight = weights[min(key + 1u, 64u - 1u) * 13u + min(firstOut + 2u, 12u - 1u)];
          o2_0 = fma(vec4<f32>(weight[0]), v1, o2_0);
          o2_1 = fma(vec4<f32>(weight[1]), v1, o2_1);
          o2_2 = fma(vec4<f32>(weight[2]), v1, o2_2);
          o2_3 = fma(vec4<f32>(weight[3]), v1, o2_3);
        }
        {
          let weight = weights[min(key + 2u, 64u - 1u) * 13u + min(firstOut + 0u, 12u - 1u)];
          o0_0 = fma(vec4<f32>(weight[0]), v2, o0_0);
          o0_1 = fma(vec4<f32>(weight[1]), v2, o0_1);
          o0_2 = fma(vec4<f32>(weight[2]), v2, o0_2);
          o0_3 = fma(vec4<f32>(weight[3]), v2, o0_3);
        }
        {
          let weight = weights[min(key + 2u, 64u - 1u) * 13u + min(firstOut + 1u, 12u - 1u)];
          o1_0 = fma(vec4<f32>(weight[0]), v2, o1_0);
          o1_1 = fma(vec4<f32>(weight[1]), v2, o1_1);
          o1_2 = fma(vec4<f32>(weight[2]), v2, o1_2);
          o1_3 = fma(vec4<f32>(weight[3]), v2, o1_3);
        }
        {
          let weight = weights[min(key + 2u, 64u - 1u) * 13u + min(firstOut + 2u, 12u - 1u)];
          o2_0 = fma(vec4<f32>(weight[0]), v2, o2_0);
          o2_1 = fma(vec4<f32>(weight[1]), v2, o2_1);
          o2_2 = fma(vec4<f32>(weight[2]), v2, o2_2);
          o2_3 = fma(vec4<f32>(weight[3]), v2, o2_3);
        }
        {
          let weight = weights[min(key + 3u, 64u - 1u) * 13u + min(firstOut + 0u, 12u - 1u)];
          o0_0 = fma(vec4<f32>(weight[0]), v3, o0_0);
          o0_1 = fma(vec4<f32>(weight[1]), v3, o0_1);
          o0_2 = fma(vec4<f32>(weight[2]), v3, o0_2);
          o0_3 = fma(vec4<f32>(weight[3]), v3, o0_3);
        }
        {
          let weight = weights[min(key + 3u, 64u - 1u) * 13u + min(firstOut + 1u, 12u - 1u)];
          o1_0 = fma(vec4<f32>(weight[0]), v3, o1_0);
          o1_1 = fma(vec4<f32>(weight[1]), v3, o1_1);
          o1_2 = fma(vec4<f32>(weight[2]), v3, o1_2);
          o1_3 = fma(vec4<f32>(weight[3]), v3, o1_3);
        }
        {
          let weight = weights[min(key + 3u, 64u - 1u) * 13u + min(firstOut + 2u, 12u - 1u)];
          o2_0 = fma(vec4<f32>(weight[0]), v3, o2_0);
          o2_1 = fma(vec4<f32>(weight[1]), v3, o2_1);
          o2_2 = fma(vec4<f32>(weight[2]), v3, o2_2);
          o2_3 = fma(vec4<f32>(weight[3]), v3, o2_3);
        }
      }
      let live0 = seen(block, firstOut + 0u, tile);
      let live1 = seen(block, firstOut + 1u, tile);
      let live2 = seen(block, firstOut + 2u, tile);
      for (; key < most; key += 4u) {
        let v0 = vec4<f32>(values[valueAt + min(key + 0u, most - 1u) * 64u]);
        let v1 = vec4<f32>(values[valueAt + min(key + 1u, most - 1u) * 64u]);
        let v2 = vec4<f32>(values[valueAt + min(key + 2u, most - 1u) * 64u]);
        let v3 = vec4<f32>(values[valueAt + min(key + 3u, most - 1u) * 64u]);
        {
          let weight = weights[min(key + 0u, 64u - 1u) * 13u + min(firstOut + 0u, 12u - 1u)];
          o0_0 = select(o0_0, fma(vec4<f32>(weight[0]), v0, o0_0), key + 0u < live0[0]);
          o0_1 = select(o0_1, fma(vec4<f32>(weight[1]), v0, o0_1), key + 0u < live0[1]);
          o0_2 = select(o0_2, fma(vec4<f32>(weight[2]), v0, o0_2), key + 0u < live0[2]);
          o0_3 = select(o0_3, fma(vec4<f32>(weight[3]), v0, o0_3), key + 0u < live0[3]);
        }
        {
          let weight = weights[min(key + 0u, 64u - 1u) * 13u + min(firstOut + 1u, 12u - 1u)];
          o1_0 = select(o1_0, fma(vec4<f32>(weight[0]), v0, o1_0), key + 0u < live1[0]);
          o1_1 = select(o1_1, fma(vec4<f32>(weight[1]), v0, o1_1), key + 0u < live1[1]);
          o1_2 = select(o1_2, fma(vec4<f32>(weight[2]), v0, o1_2), key + 0u < live1[2]);
          o1_3 = select(o1_3, fma(vec4<f32>(weight[3]), v0, o1_3), key + 0u < live1[3]);
        }
        {
          let weight = weights[min(key + 0u, 64u - 1u) * 13u + min(firstOut + 2u, 12u - 1u)];
          o2_0 = select(o2_0, fma(vec4<f32>(weight[0]), v0, o2_0), key + 0u < live2[0]);
          o2_1 = select(o2_1, fma(vec4<f32>(weight[1]), v0, o2_1), key + 0u < live2[1]);
          o2_2 = select(o2_2, fma(vec4<f32>(weight[2]), v0, o2_2), key + 0u < live2[2]);
          o2_3 = select(o2_3, fma(vec4<f32>(weight[3]), v0, o2_3), key + 0u < live2[3]);
        }
        {
          let weight = weights[min(key + 1u, 64u - 1u) * 13u + min(firstOut + 0u, 12u - 1u)];
          o0_0 = select(o0_0, fma(vec4<f32>(weight[0]), v1, o0_0), key + 1u < live0[0]);
          o0_1 = select(o0_1, fma(vec4<f32>(weight[1]), v1, o0_1), key + 1u < live0[1]);
          o0_2 = select(o0_2, fma(vec4<f32>(weight[2]), v1, o0_2), key + 1u < live0[2]);
          o0_3 = select(o0_3, fma(vec4<f32>(weight[3]), v1, o0_3), key + 1u < live0[3]);
        }
        {
          let weight = weights[min(key + 1u, 64u - 1u) * 13u + min(firstOut + 1u, 12u - 1u)];
          o1_0 = select(o1_0, fma(vec4<f32>(weight[0]), v1, o1_0), key + 1u < live1[0]);
          o1_1 = select(o1_1, fma(vec4<f32>(weight[1]), v1, o1_1), key + 1u < live1[1]);
          o1_2 = select(o1_2, fma(vec4<f32>(weight[2]), v1, o1_2), key + 1u < live1[2]);
          o1_3 = select(o1_3, fma(vec4<f32>(weight[3]), v1, o1_3), key + 1u < live1[3]);
        }
        {
          let weight = weights[min(key + 1u, 64u - 1u) * 13u + min(firstOut + 2u, 12u - 1u)];
          o2_0 = select(o2_0, fma(vec4<f32>(weight[0]), v1, o2_0), key + 1u < live2[0]);
          o2_1 = select(o2_1, fma(vec4<f32>(weight[1]), v1, o2_1), key + 1u < live2[1]);
          o2_2 = select(o2_2, fma(vec4<f32>(weight[2]), v1, o2_2), key + 1u < live2[2]);
          o2_3 = select(o2_3, fma(vec4<f32>(weight[3]), v1, o2_3), key + 1u < live2[3]);
        }
        {
          let weight = weights[min(key + 2u, 64u - 1u) * 13u + min(firstOut + 0u, 12u - 1u)];
          o0_0 = select(o0_0, fma(vec4<f32>(weight[0]), v2, o0_0), key + 2u < live0[0]);
          o0_1 = select(o0_1, fma(vec4<f32>(weight[1]), v2, o0_1), key + 2u < live0[1]);
          o0_2 = select(o0_2, fma(vec4<f32>(weight[2]), v2, o0_2), key + 2u < live0[2]);
          o0_3 = select(o0_3, fma(vec4<f32>(weight[3]), v2, o0_3), key + 2u < live0[3]);
        }
        {
          let weight = weights[min(key + 2u, 64u - 1u) * 13u + min(firstOut + 1u, 12u - 1u)];
          o1_0 = select(o1_0, fma(vec4<f32>(weight[0]), v2, o1_0), key + 2u < live1[0]);
          o1_1 = select(o1_1, fma(vec4<f32>(weight[1]), v2, o1_1), key + 2u < live1[1]);
          o1_2 = select(o1_2, fma(vec4<f32>(weight[2]), v2, o1_2), key + 2u < live1[2]);
          o1_3 = select(o1_3, fma(vec4<f32>(weight[3]), v2, o1_3), key + 2u < live1[3]);
        }
        {
          let weight = weights[min(key + 2u, 64u - 1u) * 13u + min(firstOut + 2u, 12u - 1u)];
          o2_0 = select(o2_0, fma(vec4<f32>(weight[0]), v2, o2_0), key + 2u < live2[0]);
          o2_1 = select(o2_1, fma(vec4<f32>(weight[1]), v2, o2_1), key + 2u < live2[1]);
          o2_2 = select(o2_2, fma(vec4<f32>(weight[2]), v2, o2_2), key + 2u < live2[2]);
          o2_3 = select(o2_3, fma(vec4<f32>(weight[3]), v2, o2_3), key + 2u < live2[3]);
        }
        {
          let weight = weights[min(key + 3u, 64u - 1u) * 13u + min(firstOut + 0u, 12u - 1u)];
          o0_0 = select(o0_0, fma(vec4<f32>(weight[0]), v3, o0_0), key + 3u < live0[0]);
          o0_1 = select(o0_1, fma(vec4<f32>(weight[1]), v3, o0_1), key + 3u < live0[1]);
          o0_2 = select(o0_2, fma(vec4<f32>(weight[2]), v3, o0_2), key + 3u < live0[2]);
          o0_3 = select(o0_3, fma(vec4<f32>(weight[3]), v3, o0_3), key + 3u < live0[3]);
        }
        {
          let weight = weights[min(key + 3u, 64u - 1u) * 13u + min(firstOut + 1u, 12u - 1u)];
          o1_0 = select(o1_0, fma(vec4<f32>(weight[0]), v3, o1_0), key + 3u < live1[0]);
          o1_1 = select(o1_1, fma(vec4<f32>(weight[1]), v3, o1_1), key + 3u < live1[1]);
          o1_2 = select(o1_2, fma(vec4<f32>(weight[2]), v3, o1_2), key + 3u < live1[2]);
          o1_3 = select(o1_3, fma(vec4<f32>(weight[3]), v3, o1_3), key + 3u < live1[3]);
        }
        {
          let weight = weights[min(key + 3u, 64u - 1u) * 13u + min(firstOut + 2u, 12u - 1u)];
          o2_0 = select(o2_0, fma(vec4<f32>(weight[0]), v3, o2_0), key + 3u < live2[0]);
          o2_1 = select(o2_1, fma(vec4<f32>(weight[1]), v3, o2_1), key + 3u < live2[1]);
          o2_2 = select(o2_2, fma(vec4<f32>(weight[2]), v3, o2_2), key + 3u < live2[2]);
          o2_3 = select(o2_3, fma(vec4<f32>(weight[3]), v3, o2_3), key + 3u < live2[3]);
        }
      }
    }
    workgroupBarrier();
    let partial = select(group.z, 0u, whole);
    if (firstOut + 0u < 12u) {
      let some = seen(block, firstOut + 0u, tile) > vec4<u32>(0u);
      let fade = fades[firstOut + 0u];
      let gain = gains[firstOut + 0u];
      if (some[0] && isQuery(block, (firstOut + 0u) * 4u + 0u)) {
        let at = partialOf(block, (firstOut + 0u) * 4u + 0u, partial) * 64u + dim;
        if (fresh) { outs[at] = o0_0; }
        else { outs[at] = fma(outs[at], vec4<f32>(fade[0]), o0_0 * gain[0]); }
      }
      if (some[1] && isQuery(block, (firstOut + 0u) * 4u + 1u)) {
        let at = partialOf(block, (firstOut + 0u) * 4u + 1u, partial) * 64u + dim;
        if (fresh) { outs[at] = o0_1; }
        else { outs[at] = fma(outs[at], vec4<f32>(fade[1]), o0_1 * gain[1]); }
      }
      if (some[2] && isQuery(block, (firstOut + 0u) * 4u + 2u)) {
        let at = partialOf(block, (firstOut + 0u) * 4u + 2u, partial) * 64u + dim;
        if (fresh) { outs[at] = o0_2; }
        else { outs[at] = fma(outs[at], vec4<f32>(fade[2]), o0_2 * gain[2]); }
      }
      if (some[3] && isQuery(block, (firstOut + 0u) * 4u + 3u)) {
        let at = partialOf(block, (firstOut + 0u) * 4u + 3u, partial) * 64u + dim;
        if (fresh) { outs[at] = o0_3; }
        else { outs[at] = fma(outs[at], vec4<f32>(fade[3]), o0_3 * gain[3]); }
      }
    }
    if (firstOut + 1u < 12u) {
      let some = seen(block, firstOut + 1u, tile) > vec4<u32>(0u);
      let fade = fades[firstOut + 1u];
      let gain = gains[firstOut + 1u];
      if (some[0] && isQuery(block, (firstOut + 1u) * 4u + 0u)) {
        let at = partialOf(block, (firstOut + 1u) * 4u + 0u, partial) * 64u + dim;
        if (fresh) { outs[at] = o1_0; }
        else { outs[at] = fma(outs[at], vec4<f32>(fade[0]), o1_0 * gain[0]); }
      }
      if (some[1] && isQuery(block, (firstOut + 1u) * 4u + 1u)) {
        let at = partialOf(block, (firstOut + 1u) * 4u + 1u, partial) * 64u + dim;
        if (fresh) { outs[at] = o1_1; }
        else { outs[at] = fma(outs[at], vec4<f32>(fade[1]), o1_1 * gain[1]); }
      }
      if (some[2] && isQuery(block, (firstOut + 1u) * 4u + 2u)) {
        let at = partialOf(block, (firstOut + 1u) * 4u + 2u, partial) * 64u + dim;
        if (fresh) { outs[at] = o1_2; }
        else { outs[at] = fma(outs[at], vec4<f32>(fade[2]), o1_2 * gain[2]); }
      }
      if (some[3] && isQuery(block, (firstOut + 1u) * 4u + 3u)) {
        let at = partialOf(block, (firstOut + 1u) * 4u + 3u, partial) * 64u + dim;
        if (fresh) { outs[at] = o1_3; }
        else { outs[at] = fma(outs[at], vec4<f32>(fade[3]), o1_3 * gain[3]); }
      }
    }
    if (firstOut + 2u < 12u) {
      let some = seen(block, firstOut + 2u, tile) > vec4<u32>(0u);
      let fade = fades[firstOut + 2u];
      let gain = gains[firstOut + 2u];
      if (some[0] && isQuery(block, (firstOut + 2u) * 4u + 0u)) {
        let at = partialOf(block, (firstOut + 2u) * 4u + 0u, partial) * 64u + dim;
        if (fresh) { outs[at] = o2_0; }
        else { outs[at] = fma(outs[at], vec4<f32>(fade[0]), o2_0 * gain[0]); }
      }
      if (some[1] && isQuery(block, (firstOut + 2u) * 4u + 1u)) {
        let at = partialOf(block, (firstOut + 2u) * 4u + 1u, partial) * 64u + dim;
        if (fresh) { outs[at] = o2_1; }
        else { outs[at] = fma(outs[at], vec4<f32>(fade[1]), o2_1 * gain[1]); }
      }
      if (some[2] && isQuery(block, (firstOut + 2u) * 4u + 2u)) {
        let at = partialOf(block, (firstOut + 2u) * 4u + 2u, partial) * 64u + dim;
        if (fresh) { outs[at] = o2_2; }
        else { outs[at] = fma(outs[at], vec4<f32>(fade[2]), o2_2 * gain[2]); }
      }
      if (some[3] && isQuery(block, (firstOut + 2u) * 4u + 3u)) {
        let at = partialOf(block, (firstOut + 2u) * 4u + 3u, partial) * 64u + dim;
        if (fresh) { outs[at] = o2_3; }
        else { outs[at] = fma(outs[at], vec4<f32>(fade[3]), o2_3 * gain[3]); }
      }
    }

    if (whole && (tile % 8u == 8u - 1u || tile == endTile - 1u)) {
      let chunkTile = tile / 8u * 8u;
      workgroupBarrier();
      if (softQuad < 12u && softLane == 0u) {
        let some = seen(block, softQuad, chunkTile) > vec4<u32>(0u);
        let next = max(rowTop, top);
        let fade = exp(rowTop - next);
        let gain = exp(top - next);
        fades[softQuad] = fade;
        gains[softQuad] = gain;
        if (chunkTile == 0u) {
          rowTop = top;
          rowSum = sum;
        } else {
          rowSum = select(rowSum, fma(rowSum, fade, sum * gain), some);
          rowTop = select(rowTop, next, some);
        }
      }
      workgroupBarrier();
      for (var q = firstOut * 4u; q < min(firstOut + 3u, 12u) * 4u; q++) {
        if (isQuery(block, q) && seen(block, q / 4u, chunkTile)[q % 4u] > 0u) {
          let chunk = partialOf(block, q, 0u) * 64u + dim;
          let row = chunk + 64u;
          if (chunkTile == 0u) { outs[row] = outs[chunk]; }
          else {
            let fade = vec4<f32>(fades[q / 4u][q % 4u]);
            outs[row] = fma(outs[row], fade, outs[chunk] * gains[q / 4u][q % 4u]);
          }
        }
      }
    }
  }

  if (firstTile < endTile && softQuad < 12u && softLane == 0u) {
    let some = seen(block, softQuad, firstTile) > vec4<u32>(0u);
    let partial = select(group.z, 1u, whole);
    let lastTop = select(top, rowTop, whole);
    let lastSum = select(sum, rowSum, whole);
    for (var j = 0u; j < 4u; j++) {
      let q = softQuad * 4u + j;
      if (some[j] && isQuery(block, q)) {
        stats[partialOf(block, q, partial)] = vec2<f32>(lastTop[j], lastSum[j]);
      }
    }
  }
}
