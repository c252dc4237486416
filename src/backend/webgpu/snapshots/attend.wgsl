// ATTEND: softmax(q·K / √dim)·V of a block of neighbouring rows of one segment, for the query heads of one KV
// head, over a span of keys; one workgroup a (block, KV head, span). Called for every pass; merge.wgsl ends it.
//
// A layer's page: keys [KV head, dim / 4, 64 rows] and values [KV head, 64 rows, dim / 4] of vec4.
// Queries are [row, head, dim / 4]. A workgroup takes up to 1 rows × 6 heads, four
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
// TREE is for passes with trees: blocks of one row, whose keys from its segment's start on lie where its ancestors do.
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

@group(0) @binding(2) var<storage, read> query: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> keys: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> values: array<vec4<f32>>;
// [row, head, partial, dim / 4] and [row, head, partial] of (top, sum).
@group(0) @binding(5) var<storage, read_write> outs: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read_write> stats: array<vec2<f32>>;

// Scores, then weights, [key, quad]; the odd stride keeps columns in different banks.
var<workgroup> weights: array<vec4<f32>, 64 * 3>;
var<workgroup> lanes: array<vec4<f32>, 4 * 2>;
var<workgroup> fades: array<vec4<f32>, 2>;
var<workgroup> gains: array<vec4<f32>, 2>;
// Of a tile's keys: where the page begins, and the row there.
var<workgroup> keyPages: array<u32, 64>;
var<workgroup> keyRows: array<u32, 64>;

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
// Where the key at a position of the row's lies.
fn placeOf(row: u32, position: u32) -> u32 {
  let segment = rowSegment(row);
  let start = rowPosition(segmentWord(segment, 0u));
  if (segmentWord(segment, 7u) != 2u || position < start || position > rowPosition(row)) { return position; }
  return start + pathRow(pathOf(row), position - start);
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

  // Scores: a thread has a part of the dims, 2 quads and every 64-th key.
  let part = thread / 64u;
  let keyLane = thread % 64u;
  let firstQuad = thread % 64u / 64u * 2u;
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
  // Softmax: a thread has a quad and every fourth key. The first of a quad holds its top and sum.
  let softQuad = thread / 4u;
  let softLane = thread % 4u;
  var top = vec4<f32>(0.0);
  var sum = vec4<f32>(0.0);
  var rowTop = vec4<f32>(0.0);
  var rowSum = vec4<f32>(0.0);
  // Values: a thread has four dims and 1 quads.
  let dim = thread % 64u;
  let firstOut = thread / 64u * 1u;

  for (var tile = firstTile; tile < endTile; tile++) {
    if (thread < 64u) {
      let place = placeOf(firstRow, tile * 64u + thread);
      keyPages[thread] = (pageOf(segment, place) * 4u + kvHead) * 64u * 64u;
      keyRows[thread] = place % 64u;
    }
    workgroupBarrier();
    let fresh = tile % 8u == 0u || tile == firstTile;
    {
      var s0_0 = vec4<f32>(0.0);
      var s1_0 = vec4<f32>(0.0);
      let lane0 = keyLane + 0u * 64u;
      let keyAt0 = keyPages[lane0] + part * 16u * 64u + keyRows[lane0];
      for (var step = 0u; step < 16u; step += 8u) {
        let k0_0 = vec4<f32>(keys[keyAt0 + (step + 0u) * 64u]);
        let k1_0 = vec4<f32>(keys[keyAt0 + (step + 1u) * 64u]);
        let k2_0 = vec4<f32>(keys[keyAt0 + (step + 2u) * 64u]);
        let k3_0 = vec4<f32>(keys[keyAt0 + (step + 3u) * 64u]);
        let k4_0 = vec4<f32>(keys[keyAt0 + (step + 4u) * 64u]);
        let k5_0 = vec4<f32>(keys[keyAt0 + (step + 5u) * 64u]);
        let k6_0 = vec4<f32>(keys[keyAt0 + (step + 6u) * 64u]);
        let k7_0 = vec4<f32>(keys[keyAt0 + (step + 7u) * 64u]);
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
        }
        {
          var x0 = vec4<f32>(0.0);
          var x1 = vec4<f32>(0.0);
          var x2 = vec4<f32>(0.0);
          var x3 = vec4<f32>(0.0);
          x0 = query[q1_0 + step + 0u];
          x1 = query[q1_1 + step + 0u];
          s1_0[0] = fma(x0.x, k0_0.x, s1_0[0]);
          s1_0[0] = fma(x0.y, k0_0.y, s1_0[0]);
          s1_0[0] = fma(x0.z, k0_0.z, s1_0[0]);
          s1_0[0] = fma(x0.w, k0_0.w, s1_0[0]);
          s1_0[1] = fma(x1.x, k0_0.x, s1_0[1]);
          s1_0[1] = fma(x1.y, k0_0.y, s1_0[1]);
          s1_0[1] = fma(x1.z, k0_0.z, s1_0[1]);
          s1_0[1] = fma(x1.w, k0_0.w, s1_0[1]);
        }
        {
          var x0 = vec4<f32>(0.0);
          var x1 = vec4<f32>(0.0);
          var x2 = vec4<f32>(0.0);
          var x3 = vec4<f32>(0.0);
          x0 = query[q0_0 + step + 1u];
          x1 = query[q0_1 + step + 1u];
          x2 = query[q0_2 + step + 1u];
          x3 = query[q0_3 + step + 1u];
          s0_0[0] = fma(x0.x, k1_0.x, s0_0[0]);
          s0_0[0] = fma(x0.y, k1_0.y, s0_0[0]);
          s0_0[0] = fma(x0.z, k1_0.z, s0_0[0]);
          s0_0[0] = fma(x0.w, k1_0.w, s0_0[0]);
          s0_0[1] = fma(x1.x, k1_0.x, s0_0[1]);
          s0_0[1] = fma(x1.y, k1_0.y, s0_0[1]);
          s0_0[1] = fma(x1.z, k1_0.z, s0_0[1]);
          s0_0[1] = fma(x1.w, k1_0.w, s0_0[1]);
          s0_0[2] = fma(x2.x, k1_0.x, s0_0[2]);
          s0_0[2] = fma(x2.y, k1_0.y, s0_0[2]);
          s0_0[2] = fma(x2.z, k1_0.z, s0_0[2]);
          s0_0[2] = fma(x2.w, k1_0.w, s0_0[2]);
          s0_0[3] = fma(x3.x, k1_0.x, s0_0[3]);
          s0_0[3] = fma(x3.y, k1_0.y, s0_0[3]);
          s0_0[3] = fma(x3.z, k1_0.z, s0_0[3]);
          s0_0[3] = fma(x3.w, k1_0.w, s0_0[3]);
        }
        {
          var x0 = vec4<f32>(0.0);
          var x1 = vec4<f32>(0.0);
          var x2 = vec4<f32>(0.0);
          var x3 = vec4<f32>(0.0);
          x0 = query[q1_0 + step + 1u];
          x1 = query[q1_1 + step + 1u];
          s1_0[0] = fma(x0.x, k1_0.x, s1_0[0]);
          s1_0[0] = fma(x0.y, k1_0.y, s1_0[0]);
          s1_0[0] = fma(x0.z, k1_0.z, s1_0[0]);
          s1_0[0] = fma(x0.w, k1_0.w, s1_0[0]);
          s1_0[1] = fma(x1.x, k1_0.x, s1_0[1]);
          s1_0[1] = fma(x1.y, k1_0.y, s1_0[1]);
          s1_0[1] = fma(x1.z, k1_0.z, s1_0[1]);
          s1_0[1] = fma(x1.w, k1_0.w, s1_0[1]);
        }
        {
          var x0 = vec4<f32>(0.0);
          var x1 = vec4<f32>(0.0);
          var x2 = vec4<f32>(0.0);
          var x3 = vec4<f32>(0.0);
          x0 = query[q0_0 + step + 2u];
          x1 = query[q0_1 + step + 2u];
          x2 = query[q0_2 + step + 2u];
          x3 = query[q0_3 + step + 2u];
          s0_0[0] = fma(x0.x, k2_0.x, s0_0[0]);
          s0_0[0] = fma(x0.y, k2_0.y, s0_0[0]);
          s0_0[0] = fma(x0.z, k2_0.z, s0_0[0]);
          s0_0[0] = fma(x0.w, k2_0.w, s0_0[0]);
          s0_0[1] = fma(x1.x, k2_0.x, s0_0[1]);
          s0_0[1] = fma(x1.y, k2_0.y, s0_0[1]);
          s0_0[1] = fma(x1.z, k2_0.z, s0_0[1]);
          s0_0[1] = fma(x1.w, k2_0.w, s0_0[1]);
          s0_0[2] = fma(x2.x, k2_0.x, s0_0[2]);
          s0_0[2] = fma(x2.y, k2_0.y, s0_0[2]);
          s0_0[2] = fma(x2.z, k2_0.z, s0_0[2]);
          s0_0[2] = fma(x2.w, k2_0.w, s0_0[2]);
          s0_0[3] = fma(x3.x, k2_0.x, s0_0[3]);
          s0_0[3] = fma(x3.y, k2_0.y, s0_0[3]);
          s0_0[3] = fma(x3.z, k2_0.z, s0_0[3]);
          s0_0[3] = fma(x3.w, k2_0.w, s0_0[3]);
        }
        {
          var x0 = vec4<f32>(0.0);
          var x1 = vec4<f32>(0.0);
          var x2 = vec4<f32>(0.0);
          var x3 = vec4<f32>(0.0);
          x0 = query[q1_0 + step + 2u];
          x1 = query[q1_1 + step + 2u];
          s1_0[0] = fma(x0.x, k2_0.x, s1_0[0]);
          s1_0[0] = fma(x0.y, k2_0.y, s1_0[0]);
          s1_0[0] = fma(x0.z, k2_0.z, s1_0[0]);
          s1_0[0] = fma(x0.w, k2_0.w, s1_0[0]);
          s1_0[1] = fma(x1.x, k2_0.x, s1_0[1]);
          s1_0[1] = fma(x1.y, k2_0.y, s1_0[1]);
          s1_0[1] = fma(x1.z, k2_0.z, s1_0[1]);
          s1_0[1] = fma(x1.w, k2_0.w, s1_0[1]);
        }
        {
          var x0 = vec4<f32>(0.0);
          var x1 = vec4<f32>(0.0);
          var x2 = vec4<f32>(0.0);
          var x3 = vec4<f32>(0.0);
          x0 = query[q0_0 + step + 3u];
          x1 = query[q0_1 + step + 3u];
          x2 = query[q0_2 + step + 3u];
          x3 = query[q0_3 + step + 3u];
          s0_0[0] = fma(x0.x, k3_0.x, s0_0[0]);
          s0_0[0] = fma(x0.y, k3_0.y, s0_0[0]);
          s0_0[0] = fma(x0.z, k3_0.z, s0_0[0]);
          s0_0[0] = fma(x0.w, k3_0.w, s0_0[0]);
          s0_0[1] = fma(x1.x, k3_0.x, s0_0[1]);
          s0_0[1] = fma(x1.y, k3_0.y, s0_0[1]);
          s0_0[1] = fma(x1.z, k3_0.z, s0_0[1]);
          s0_0[1] = fma(x1.w, k3_0.w, s0_0[1]);
          s0_0[2] = fma(x2.x, k3_0.x, s0_0[2]);
          s0_0[2] = fma(x2.y, k3_0.y, s0_0[2]);
          s0_0[2] = fma(x2.z, k3_0.z, s0_0[2]);
          s0_0[2] = fma(x2.w, k3_0.w, s0_0[2]);
          s0_0[3] = fma(x3.x, k3_0.x, s0_0[3]);
          s0_0[3] = fma(x3.y, k3_0.y, s0_0[3]);
          s0_0[3] = fma(x3.z, k3_0.z, s0_0[3]);
          s0_0[3] = fma(x3.w, k3_0.w, s0_0[3]);
        }
        {
          var x0 = vec4<f32>(0.0);
          var x1 = vec4<f32>(0.0);
          var x2 = vec4<f32>(0.0);
          var x3 = vec4<f32>(0.0);
          x0 = query[q1_0 + step + 3u];
          x1 = query[q1_1 + step + 3u];
          s1_0[0] = fma(x0.x, k3_0.x, s1_0[0]);
          s1_0[0] = fma(x0.y, k3_0.y, s1_0[0]);
          s1_0[0] = fma(x0.z, k3_0.z, s1_0[0]);
          s1_0[0] = fma(x0.w, k3_0.w, s1_0[0]);
          s1_0[1] = fma(x1.x, k3_0.x, s1_0[1]);
          s1_0[1] = fma(x1.y, k3_0.y, s1_0[1]);
          s1_0[1] = fma(x1.z, k3_0.z, s1_0[1]);
          s1_0[1] = fma(x1.w, k3_0.w, s1_0[1]);
        }
        {
          var x0 = vec4<f32>(0.0);
          var x1 = vec4<f32>(0.0);
          var x2 = vec4<f32>(0.0);
          var x3 = vec4<f32>(0.0);
          x0 = query[q0_0 + step + 4u];
          x1 = query[q0_1 + step + 4u];
          x2 = query[q0_2 + step + 4u];
          x3 = query[q0_3 + step + 4u];
          s0_0[0] = fma(x0.x, k4_0.x, s0_0[0]);
          s0_0[0] = fma(x0.y, k4_0.y, s0_0[0]);
          s0_0[0] = fma(x0.z, k4_0.z, s0_0[0]);
          s0_0[0] = fma(x0.w, k4_0.w, s0_0[0]);
          s0_0[1] = fma(x1.x, k4_0.x, s0_0[1]);
          s0_0[1] = fma(x1.y, k4_0.y, s0_0[1]);
          s0_0[1] = fma(x1.z, k4_0.z, s0_0[1]);
          s0_0[1] = fma(x1.w, k4_0.w, s0_0[1]);
          s0_0[2] = fma(x2.x, k4_0.x, s0_0[2]);
          s0_0[2] = fma(x2.y, k4_0.y, s0_0[2]);
          s0_0[2] = fma(x2.z, k4_0.z, s0_0[2]);
          s0_0[2] = fma(x2.w, k4_0.w, s0_0[2]);
          s0_0[3] = fma(x3.x, k4_0.x, s0_0[3]);
          s0_0[3] = fma(x3.y, k4_0.y, s0_0[3]);
          s0_0[3] = fma(x3.z, k4_0.z, s0_0[3]);
          s0_0[3] = fma(x3.w, k4_0.w, s0_0[3]);
        }
        {
          var x0 = vec4<f32>(0.0);
          var x1 = vec4<f32>(0.0);
          var x2 = vec4<f32>(0.0);
          var x3 = vec4<f32>(0.0);
          x0 = query[q1_0 + step + 4u];
          x1 = query[q1_1 + step + 4u];
          s1_0[0] = fma(x0.x, k4_0.x, s1_0[0]);
          s1_0[0] = fma(x0.y, k4_0.y, s1_0[0]);
          s1_0[0] = fma(x0.z, k4_0.z, s1_0[0]);
          s1_0[0] = fma(x0.w, k4_0.w, s1_0[0]);
          s1_0[1] = fma(x1.x, k4_0.x, s1_0[1]);
          s1_0[1] = fma(x1.y, k4_0.y, s1_0[1]);
          s1_0[1] = fma(x1.z, k4_0.z, s1_0[1]);
          s1_0[1] = fma(x1.w, k4_0.w, s1_0[1]);
        }
        {
          var x0 = vec4<f32>(0.0);
          var x1 = vec4<f32>(0.0);
          var x2 = vec4<f32>(0.0);
          var x3 = vec4<f32>(0.0);
          x0 = query[q0_0 + step + 5u];
          x1 = query[q0_1 + step + 5u];
          x2 = query[q0_2 + step + 5u];
          x3 = query[q0_3 + step + 5u];
          s0_0[0] = fma(x0.x, k5_0.x, s0_0[0]);
          s0_0[0] = fma(x0.y, k5_0.y, s0_0[0]);
          s0_0[0] = fma(x0.z, k5_0.z, s0_0[0]);
          s0_0[0] = fma(x0.w, k5_0.w, s0_0[0]);
          s0_0[1] = fma(x1.x, k5_0.x, s0_0[1]);
          s0_0[1] = fma(x1.y, k5_0.y, s0_0[1]);
          s0_0[1] = fma(x1.z, k5_0.z, s0_0[1]);
          s0_0[1] = fma(x1.w, k5_0.w, s0_0[1]);
          s0_0[2] = fma(x2.x, k5_0.x, s0_0[2]);
          s0_0[2] = fma(x2.y, k5_0.y, s0_0[2]);
          s0_0[2] = fma(x2.z, k5_0.z, s0_0[2]);
          s0_0[2] = fma(x2.w, k5_0.w, s0_0[2]);
          s0_0[3] = fma(x3.x, k5_0.x, s0_0[3]);
          s0_0[3] = fma(x3.y, k5_0.y, s0_0[3]);
          s0_0[3] = fma(x3.z, k5_0.z, s0_0[3]);
          s0_0[3] = fma(x3.w, k5_0.w, s0_0[3]);
        }
        {
          var x0 = vec4<f32>(0.0);
          var x1 = vec4<f32>(0.0);
          var x2 = vec4<f32>(0.0);
          var x3 = vec4<f32>(0.0);
          x0 = query[q1_0 + step + 5u];
          x1 = query[q1_1 + step + 5u];
          s1_0[0] = fma(x0.x, k5_0.x, s1_0[0]);
          s1_0[0] = fma(x0.y, k5_0.y, s1_0[0]);
          s1_0[0] = fma(x0.z, k5_0.z, s1_0[0]);
          s1_0[0] = fma(x0.w, k5_0.w, s1_0[0]);
          s1_0[1] = fma(x1.x, k5_0.x, s1_0[1]);
          s1_0[1] = fma(x1.y, k5_0.y, s1_0[1]);
          s1_0[1] = fma(x1.z, k5_0.z, s1_0[1]);
          s1_0[1] = fma(x1.w, k5_0.w, s1_0[1]);
        }
        {
          var x0 = vec4<f32>(0.0);
          var x1 = vec4<f32>(0.0);
          var x2 = vec4<f32>(0.0);
          var x3 = vec4<f32>(0.0);
          x0 = query[q0_0 + step + 6u];
          x1 = query[q0_1 + step + 6u];
          x2 = query[q0_2 + step + 6u];
          x3 = query[q0_3 + step + 6u];
          s0_0[0] = fma(x0.x, k6_0.x, s0_0[0]);
          s0_0[0] = fma(x0.y, k6_0.y, s0_0[0]);
          s0_0[0] = fma(x0.z, k6_0.z, s0_0[0]);
          s0_0[0] = fma(x0.w, k6_0.w, s0_0[0]);
          s0_0[1] = fma(x1.x, k6_0.x, s0_0[1]);
          s0_0[1] = fma(x1.y, k6_0.y, s0_0[1]);
          s0_0[1] = fma(x1.z, k6_0.z, s0_0[1]);
          s0_0[1] = fma(x1.w, k6_0.w, s0_0[1]);
          s0_0[2] = fma(x2.x, k6_0.x, s0_0[2]);
          s0_0[2] = fma(x2.y, k6_0.y, s0_0[2]);
          s0_0[2] = fma(x2.z, k6_0.z, s0_0[2]);
          s0_0[2] = fma(x2.w, k6_0.w, s0_0[2]);
          s0_0[3] = fma(x3.x, k6_0.x, s0_0[3]);
          s0_0[3] = fma(x3.y, k6_0.y, s0_0[3]);
          s0_0[3] = fma(x3.z, k6_0.z, s0_0[3]);
          s0_0[3] = fma(x3.w, k6_0.w, s0_0[3]);
        }
        {
          var x0 = vec4<f32>(0.0);
          var x1 = vec4<f32>(0.0);
          var x2 = vec4<f32>(0.0);
          var x3 = vec4<f32>(0.0);
          x0 = query[q1_0 + step + 6u];
          x1 = query[q1_1 + step + 6u];
          s1_0[0] = fma(x0.x, k6_0.x, s1_0[0]);
          s1_0[0] = fma(x0.y, k6_0.y, s1_0[0]);
          s1_0[0] = fma(x0.z, k6_0.z, s1_0[0]);
          s1_0[0] = fma(x0.w, k6_0.w, s1_0[0]);
          s1_0[1] = fma(x1.x, k6_0.x, s1_0[1]);
          s1_0[1] = fma(x1.y, k6_0.y, s1_0[1]);
          s1_0[1] = fma(x1.z, k6_0.z, s1_0[1]);
          s1_0[1] = fma(x1.w, k6_0.w, s1_0[1]);
        }
        {
          var x0 = vec4<f32>(0.0);
          var x1 = vec4<f32>(0.0);
          var x2 = vec4<f32>(0.0);
          var x3 = vec4<f32>(0.0);
          x0 = query[q0_0 + step + 7u];
          x1 = query[q0_1 + step + 7u];
          x2 = query[q0_2 + step + 7u];
          x3 = query[q0_3 + step + 7u];
          s0_0[0] = fma(x0.x, k7_0.x, s0_0[0]);
          s0_0[0] = fma(x0.y, k7_0.y, s0_0[0]);
          s0_0[0] = fma(x0.z, k7_0.z, s0_0[0]);
          s0_0[0] = fma(x0.w, k7_0.w, s0_0[0]);
          s0_0[1] = fma(x1.x, k7_0.x, s0_0[1]);
          s0_0[1] = fma(x1.y, k7_0.y, s0_0[1]);
          s0_0[1] = fma(x1.z, k7_0.z, s0_0[1]);
          s0_0[1] = fma(x1.w, k7_0.w, s0_0[1]);
          s0_0[2] = fma(x2.x, k7_0.x, s0_0[2]);
          s0_0[2] = fma(x2.y, k7_0.y, s0_0[2]);
          s0_0[2] = fma(x2.z, k7_0.z, s0_0[2]);
          s0_0[2] = fma(x2.w, k7_0.w, s0_0[2]);
          s0_0[3] = fma(x3.x, k7_0.x, s0_0[3]);
          s0_0[3] = fma(x3.y, k7_0.y, s0_0[3]);
          s0_0[3] = fma(x3.z, k7_0.z, s0_0[3]);
          s0_0[3] = fma(x3.w, k7_0.w, s0_0[3]);
        }
        {
          var x0 = vec4<f32>(0.0);
          var x1 = vec4<f32>(0.0);
          var x2 = vec4<f32>(0.0);
          var x3 = vec4<f32>(0.0);
          x0 = query[q1_0 + step + 7u];
          x1 = query[q1_1 + step + 7u];
          s1_0[0] = fma(x0.x, k7_0.x, s1_0[0]);
          s1_0[0] = fma(x0.y, k7_0.y, s1_0[0]);
          s1_0[0] = fma(x0.z, k7_0.z, s1_0[0]);
          s1_0[0] = fma(x0.w, k7_0.w, s1_0[0]);
          s1_0[1] = fma(x1.x, k7_0.x, s1_0[1]);
          s1_0[1] = fma(x1.y, k7_0.y, s1_0[1]);
          s1_0[1] = fma(x1.z, k7_0.z, s1_0[1]);
          s1_0[1] = fma(x1.w, k7_0.w, s1_0[1]);
        }
      }
      for (var p = 0u; p < 4u; p++) {
        if (part == p) {
          {
            let at = (keyLane + 0u * 64u) * 3u + firstQuad + 0u;
            weights[at] = select(weights[at] + s0_0, s0_0, p == 0u);
          }
          {
            let at = (keyLane + 0u * 64u) * 3u + firstQuad + 1u;
            weights[at] = select(weights[at] + s1_0, s1_0, p == 0u);
          }
        }
        workgroupBarrier();
      }
    }
    let live = seen(block, softQuad, tile);
    var tileTop = vec4<f32>(lowest);
    if (softQuad < 2u) {
      for (var key = softLane; key < 64u; key += 4u) {
        let at = key * 3u + softQuad;
        let score = weights[at] * (1.0 / sqrt(f32(256u)));
        weights[at] = score;
        tileTop = max(tileTop, select(vec4<f32>(lowest), score, vec4<u32>(key) < live));
      }
      lanes[thread] = tileTop;
    }
    workgroupBarrier();
    var laneSum = vec4<f32>(0.0);
    if (softQuad < 2u) {
      for (var i = 0u; i < 4u; i++) { tileTop = max(tileTop, lanes[softQuad * 4u + i]); }
      for (var key = softLane; key < 64u; key += 4u) {
        let at = key * 3u + softQuad;
        let weight = select(vec4<f32>(0.0), exp(weights[at] - tileTop), vec4<u32>(key) < live);
        weights[at] = weight;
        laneSum += weight;
      }
    }
    workgroupBarrier();
    if (softQuad < 2u) { lanes[thread] = laneSum; }
    workgroupBarrier();
    if (softQuad < 2u && softLane == 0u) {
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
    if (firstOut < 2u) {
      // Keys of this tile that the first row sees, and the last.
      let all = min(max(block.firstCount, tile * 64u) - tile * 64u, 64u);
      let most = min(keyCount - tile * 64u, 64u);
      var key = 0u;
      for (; key + 16u <= all; key += 16u) {
        let key0 = min(key + 0u, most - 1u);
        let v0 = vec4<f32>(values[keyPages[key0] + keyRows[key0] * 64u + dim]);
        let key1 = min(key + 1u, most - 1u);
        let v1 = vec4<f32>(values[keyPages[key1] + keyRows[key1] * 64u + dim]);
        let key2 = min(key + 2u, most - 1u);
        let v2 = vec4<f32>(values[keyPages[key2] + keyRows[key2] * 64u + dim]);
        let key3 = min(key + 3u, most - 1u);
        let v3 = vec4<f32>(values[keyPages[key3] + keyRows[key3] * 64u + dim]);
        let key4 = min(key + 4u, most - 1u);
        let v4 = vec4<f32>(values[keyPages[key4] + keyRows[key4] * 64u + dim]);
        let key5 = min(key + 5u, most - 1u);
        let v5 = vec4<f32>(values[keyPages[key5] + keyRows[key5] * 64u + dim]);
        let key6 = min(key + 6u, most - 1u);
        let v6 = vec4<f32>(values[keyPages[key6] + keyRows[key6] * 64u + dim]);
        let key7 = min(key + 7u, most - 1u);
        let v7 = vec4<f32>(values[keyPages[key7] + keyRows[key7] * 64u + dim]);
        let key8 = min(key + 8u, most - 1u);
        let v8 = vec4<f32>(values[keyPages[key8] + keyRows[key8] * 64u + dim]);
        let key9 = min(key + 9u, most - 1u);
        let v9 = vec4<f32>(values[keyPages[key9] + keyRows[key9] * 64u + dim]);
        let key10 = min(key + 10u, most - 1u);
        let v10 = vec4<f32>(values[keyPages[key10] + keyRows[key10] * 64u + dim]);
        let key11 = min(key + 11u, most - 1u);
        let v11 = vec4<f32>(values[keyPages[key11] + keyRows[key11] * 64u + dim]);
        let key12 = min(key + 12u, most - 1u);
        let v12 = vec4<f32>(values[keyPages[key12] + keyRows[key12] * 64u + dim]);
        let key13 = min(key + 13u, most - 1u);
        let v13 = vec4<f32>(values[keyPages[key13] + keyRows[key13] * 64u + dim]);
        let key14 = min(key + 14u, most - 1u);
        let v14 = vec4<f32>(values[keyPages[key14] + keyRows[key14] * 64u + dim]);
        let key15 = min(key + 15u, most - 1u);
        let v15 = vec4<f32>(values[keyPages[key15] + keyRows[key15] * 64u + dim]);
        {
          let weight = weights[min(key + 0u, 64u - 1u) * 3u + min(firstOut + 0u, 2u - 1u)];
          o0_0 = fma(vec4<f32>(weight[0]), v0, o0_0);
          o0_1 = fma(vec4<f32>(weight[1]), v0, o0_1);
          o0_2 = fma(vec4<f32>(weight[2]), v0, o0_2);
          o0_3 = fma(vec4<f32>(weight[3]), v0, o0_3);
        }
        {
          let weight = weights[min(key + 1u, 64u - 1u) * 3u + min(firstOut + 0u, 2u - 1u)];
          o0_0 = fma(vec4<f32>(weight[0]), v1, o0_0);
          o0_1 = fma(vec4<f32>(weight[1]), v1, o0_1);
          o0_2 = fma(vec4<f32>(weight[2]), v1, o0_2);
          o0_3 = fma(vec4<f32>(weight[3]), v1, o0_3);
        }
        {
          let weight = weights[min(key + 2u, 64u - 1u) * 3u + min(firstOut + 0u, 2u - 1u)];
          o0_0 = fma(vec4<f32>(weight[0]), v2, o0_0);
          o0_1 = fma(vec4<f32>(weight[1]), v2, o0_1);
          o0_2 = fma(vec4<f32>(weight[2]), v2, o0_2);
          o0_3 = fma(vec4<f32>(weight[3]), v2, o0_3);
        }
        {
          let weight = weights[min(key + 3u, 64u - 1u) * 3u + min(firstOut + 0u, 2u - 1u)];
          o0_0 = fma(vec4<f32>(weight[0]), v3, o0_0);
          o0_1 = fma(vec4<f32>(weight[1]), v3, o0_1);
          o0_2 = fma(vec4<f32>(weight[2]), v3, o0_2);
          o0_3 = fma(vec4<f32>(weight[3]), v3, o0_3);
        }
        {
          let weight = weights[min(key + 4u, 64u - 1u) * 3u + min(firstOut + 0u, 2u - 1u)];
          o0_0 = fma(vec4<f32>(weight[0]), v4, o0_0);
          o0_1 = fma(vec4<f32>(weight[1]), v4, o0_1);
          o0_2 = fma(vec4<f32>(weight[2]), v4, o0_2);
          o0_3 = fma(vec4<f32>(weight[3]), v4, o0_3);
        }
        {
          let weight = weights[min(key + 5u, 64u - 1u) * 3u + min(firstOut + 0u, 2u - 1u)];
          o0_0 = fma(vec4<f32>(weight[0]), v5, o0_0);
          o0_1 = fma(vec4<f32>(weight[1]), v5, o0_1);
          o0_2 = fma(vec4<f32>(weight[2]), v5, o0_2);
          o0_3 = fma(vec4<f32>(weight[3]), v5, o0_3);
        }
        {
          let weight = weights[min(key + 6u, 64u - 1u) * 3u + min(firstOut + 0u, 2u - 1u)];
          o0_0 = fma(vec4<f32>(weight[0]), v6, o0_0);
          o0_1 = fma(vec4<f32>(weight[1]), v6, o0_1);
          o0_2 = fma(vec4<f32>(weight[2]), v6, o0_2);
          o0_3 = fma(vec4<f32>(weight[3]), v6, o0_3);
        }
        {
          let weight = weights[min(key + 7u, 64u - 1u) * 3u + min(firstOut + 0u, 2u - 1u)];
          o0_0 = fma(vec4<f32>(weight[0]), v7, o0_0);
          o0_1 = fma(vec4<f32>(weight[1]), v7, o0_1);
          o0_2 = fma(vec4<f32>(weight[2]), v7, o0_2);
          o0_3 = fma(vec4<f32>(weight[3]), v7, o0_3);
        }
        {
          let weight = weights[min(key + 8u, 64u - 1u) * 3u + min(firstOut + 0u, 2u - 1u)];
          o0_0 = fma(vec4<f32>(weight[0]), v8, o0_0);
          o0_1 = fma(vec4<f32>(weight[1]), v8, o0_1);
          o0_2 = fma(vec4<f32>(weight[2]), v8, o0_2);
          o0_3 = fma(vec4<f32>(weight[3]), v8, o0_3);
        }
        {
          let weight = weights[min(key + 9u, 64u - 1u) * 3u + min(firstOut + 0u, 2u - 1u)];
          o0_0 = fma(vec4<f32>(weight[0]), v9, o0_0);
          o0_1 = fma(vec4<f32>(weight[1]), v9, o0_1);
          o0_2 = fma(vec4<f32>(weight[2]), v9, o0_2);
          o0_3 = fma(vec4<f32>(weight[3]), v9, o0_3);
        }
        {
          let weight = weights[min(key + 10u, 64u - 1u) * 3u + min(firstOut + 0u, 2u - 1u)];
          o0_0 = fma(vec4<f32>(weight[0]), v10, o0_0);
          o0_1 = fma(vec4<f32>(weight[1]), v10, o0_1);
          o0_2 = fma(vec4<f32>(weight[2]), v10, o0_2);
          o0_3 = fma(vec4<f32>(weight[3]), v10, o0_3);
        }
        {
          let weight = weights[min(key + 11u, 64u - 1u) * 3u + min(firstOut + 0u, 2u - 1u)];
          o0_0 = fma(vec4<f32>(weight[0]), v11, o0_0);
          o0_1 = fma(vec4<f32>(weight[1]), v11, o0_1);
          o0_2 = fma(vec4<f32>(weight[2]), v11, o0_2);
          o0_3 = fma(vec4<f32>(weight[3]), v11, o0_3);
        }
        {
          let weight = weights[min(key + 12u, 64u - 1u) * 3u + min(firstOut + 0u, 2u - 1u)];
          o0_0 = fma(vec4<f32>(weight[0]), v12, o0_0);
          o0_1 = fma(vec4<f32>(weight[1]), v12, o0_1);
          o0_2 = fma(vec4<f32>(weight[2]), v12, o0_2);
          o0_3 = fma(vec4<f32>(weight[3]), v12, o0_3);
        }
        {
          let weight = weights[min(key + 13u, 64u - 1u) * 3u + min(firstOut + 0u, 2u - 1u)];
          o0_0 = fma(vec4<f32>(weight[0]), v13, o0_0);
          o0_1 = fma(vec4<f32>(weight[1]), v13, o0_1);
          o0_2 = fma(vec4<f32>(weight[2]), v13, o0_2);
          o0_3 = fma(vec4<f32>(weight[3]), v13, o0_3);
        }
        {
          let weight = weights[min(key + 14u, 64u - 1u) * 3u + min(firstOut + 0u, 2u - 1u)];
          o0_0 = fma(vec4<f32>(weight[0]), v14, o0_0);
          o0_1 = fma(vec4<f32>(weight[1]), v14, o0_1);
          o0_2 = fma(vec4<f32>(weight[2]), v14, o0_2);
          o0_3 = fma(vec4<f32>(weight[3]), v14, o0_3);
        }
        {
          let weight = weights[min(key + 15u, 64u - 1u) * 3u + min(firstOut + 0u, 2u - 1u)];
          o0_0 = fma(vec4<f32>(weight[0]), v15, o0_0);
          o0_1 = fma(vec4<f32>(weight[1]), v15, o0_1);
          o0_2 = fma(vec4<f32>(weight[2]), v15, o0_2);
          o0_3 = fma(vec4<f32>(weight[3]), v15, o0_3);
        }
      }
      let live0 = seen(block, firstOut + 0u, tile);
      for (; key < most; key += 16u) {
        let key0 = min(key + 0u, most - 1u);
        let v0 = vec4<f32>(values[keyPages[key0] + keyRows[key0] * 64u + dim]);
        let key1 = min(key + 1u, most - 1u);
        let v1 = vec4<f32>(values[keyPages[key1] + keyRows[key1] * 64u + dim]);
        let key2 = min(key + 2u, most - 1u);
        let v2 = vec4<f32>(values[keyPages[key2] + keyRows[key2] * 64u + dim]);
        let key3 = min(key + 3u, most - 1u);
        let v3 = vec4<f32>(values[keyPages[key3] + keyRows[key3] * 64u + dim]);
        let key4 = min(key + 4u, most - 1u);
        let v4 = vec4<f32>(values[keyPages[key4] + keyRows[key4] * 64u + dim]);
        let key5 = min(key + 5u, most - 1u);
        let v5 = vec4<f32>(values[keyPages[key5] + keyRows[key5] * 64u + dim]);
        let key6 = min(key + 6u, most - 1u);
        let v6 = vec4<f32>(values[keyPages[key6] + keyRows[key6] * 64u + dim]);
        let key7 = min(key + 7u, most - 1u);
        let v7 = vec4<f32>(values[keyPages[key7] + keyRows[key7] * 64u + dim]);
        let key8 = min(key + 8u, most - 1u);
        let v8 = vec4<f32>(values[keyPages[key8] + keyRows[key8] * 64u + dim]);
        let key9 = min(key + 9u, most - 1u);
        let v9 = vec4<f32>(values[keyPages[key9] + keyRows[key9] * 64u + dim]);
        let key10 = min(key + 10u, most - 1u);
        let v10 = vec4<f32>(values[keyPages[key10] + keyRows[key10] * 64u + dim]);
        let key11 = min(key + 11u, most - 1u);
        let v11 = vec4<f32>(values[keyPages[key11] + keyRows[key11] * 64u + dim]);
        let key12 = min(key + 12u, most - 1u);
        let v12 = vec4<f32>(values[keyPages[key12] + keyRows[key12] * 64u + dim]);
        let key13 = min(key + 13u, most - 1u);
        let v13 = vec4<f32>(values[keyPages[key13] + keyRows[key13] * 64u + dim]);
        let key14 = min(key + 14u, most - 1u);
        let v14 = vec4<f32>(values[keyPages[key14] + keyRows[key14] * 64u + dim]);
        let key15 = min(key + 15u, most - 1u);
        let v15 = vec4<f32>(values[keyPages[key15] + keyRows[key15] * 64u + dim]);
        {
          let weight = weights[min(key + 0u, 64u - 1u) * 3u + min(firstOut + 0u, 2u - 1u)];
          o0_0 = select(o0_0, fma(vec4<f32>(weight[0]), v0, o0_0), key + 0u < live0[0]);
          o0_1 = select(o0_1, fma(vec4<f32>(weight[1]), v0, o0_1), key + 0u < live0[1]);
          o0_2 = select(o0_2, fma(vec4<f32>(weight[2]), v0, o0_2), key + 0u < live0[2]);
          o0_3 = select(o0_3, fma(vec4<f32>(weight[3]), v0, o0_3), key + 0u < live0[3]);
        }
        {
          let weight = weights[min(key + 1u, 64u - 1u) * 3u + min(firstOut + 0u, 2u - 1u)];
          o0_0 = select(o0_0, fma(vec4<f32>(weight[0]), v1, o0_0), key + 1u < live0[0]);
          o0_1 = select(o0_1, fma(vec4<f32>(weight[1]), v1, o0_1), key + 1u < live0[1]);
          o0_2 = select(o0_2, fma(vec4<f32>(weight[2]), v1, o0_2), key + 1u < live0[2]);
          o0_3 = select(o0_3, fma(vec4<f32>(weight[3]), v1, o0_3), key + 1u < live0[3]);
        }
        {
          let weight = weights[min(key + 2u, 64u - 1u) * 3u + min(firstOut + 0u, 2u - 1u)];
          o0_0 = select(o0_0, fma(vec4<f32>(weight[0]), v2, o0_0), key + 2u < live0[0]);
          o0_1 = select(o0_1, fma(vec4<f32>(weight[1]), v2, o0_1), key + 2u < live0[1]);
          o0_2 = select(o0_2, fma(vec4<f32>(weight[2]), v2, o0_2), key + 2u < live0[2]);
          o0_3 = select(o0_3, fma(vec4<f32>(weight[3]), v2, o0_3), key + 2u < live0[3]);
        }
        {
          let weight = weights[min(key + 3u, 64u - 1u) * 3u + min(firstOut + 0u, 2u - 1u)];
          o0_0 = select(o0_0, fma(vec4<f32>(weight[0]), v3, o0_0), key + 3u < live0[0]);
          o0_1 = select(o0_1, fma(vec4<f32>(weight[1]), v3, o0_1), key + 3u < live0[1]);
          o0_2 = select(o0_2, fma(vec4<f32>(weight[2]), v3, o0_2), key + 3u < live0[2]);
          o0_3 = select(o0_3, fma(vec4<f32>(weight[3]), v3, o0_3), key + 3u < live0[3]);
        }
        {
          let weight = weights[min(key + 4u, 64u - 1u) * 3u + min(firstOut + 0u, 2u - 1u)];
          o0_0 = select(o0_0, fma(vec4<f32>(weight[0]), v4, o0_0), key + 4u < live0[0]);
          o0_1 = select(o0_1, fma(vec4<f32>(weight[1]), v4, o0_1), key + 4u < live0[1]);
          o0_2 = select(o0_2, fma(vec4<f32>(weight[2]), v4, o0_2), key + 4u < live0[2]);
          o0_3 = select(o0_3, fma(vec4<f32>(weight[3]), v4, o0_3), key + 4u < live0[3]);
        }
        {
          let weight = weights[min(key + 5u, 64u - 1u) * 3u + min(firstOut + 0u, 2u - 1u)];
          o0_0 = select(o0_0, fma(vec4<f32>(weight[0]), v5, o0_0), key + 5u < live0[0]);
          o0_1 = select(o0_1, fma(vec4<f32>(weight[1]), v5, o0_1), key + 5u < live0[1]);
          o0_2 = select(o0_2, fma(vec4<f32>(weight[2]), v5, o0_2), key + 5u < live0[2]);
          o0_3 = select(o0_3, fma(vec4<f32>(weight[3]), v5, o0_3), key + 5u < live0[3]);
        }
        {
          let weight = weights[min(key + 6u, 64u - 1u) * 3u + min(firstOut + 0u, 2u - 1u)];
          o0_0 = select(o0_0, fma(vec4<f32>(weight[0]), v6, o0_0), key + 6u < live0[0]);
          o0_1 = select(o0_1, fma(vec4<f32>(weight[1]), v6, o0_1), key + 6u < live0[1]);
          o0_2 = select(o0_2, fma(vec4<f32>(weight[2]), v6, o0_2), key + 6u < live0[2]);
          o0_3 = select(o0_3, fma(vec4<f32>(weight[3]), v6, o0_3), key + 6u < live0[3]);
        }
        {
          let weight = weights[min(key + 7u, 64u - 1u) * 3u + min(firstOut + 0u, 2u - 1u)];
          o0_0 = select(o0_0, fma(vec4<f32>(weight[0]), v7, o0_0), key + 7u < live0[0]);
          o0_1 = select(o0_1, fma(vec4<f32>(weight[1]), v7, o0_1), key + 7u < live0[1]);
          o0_2 = select(o0_2, fma(vec4<f32>(weight[2]), v7, o0_2), key + 7u < live0[2]);
          o0_3 = select(o0_3, fma(vec4<f32>(weight[3]), v7, o0_3), key + 7u < live0[3]);
        }
        {
          let weight = weights[min(key + 8u, 64u - 1u) * 3u + min(firstOut + 0u, 2u - 1u)];
          o0_0 = select(o0_0, fma(vec4<f32>(weight[0]), v8, o0_0), key + 8u < live0[0]);
          o0_1 = select(o0_1, fma(vec4<f32>(weight[1]), v8, o0_1), key + 8u < live0[1]);
          o0_2 = select(o0_2, fma(vec4<f32>(weight[2]), v8, o0_2), key + 8u < live0[2]);
          o0_3 = select(o0_3, fma(vec4<f32>(weight[3]), v8, o0_3), key + 8u < live0[3]);
        }
        {
          let weight = weights[min(key + 9u, 64u - 1u) * 3u + min(firstOut + 0u, 2u - 1u)];
          o0_0 = select(o0_0, fma(vec4<f32>(weight[0]), v9, o0_0), key + 9u < live0[0]);
          o0_1 = select(o0_1, fma(vec4<f32>(weight[1]), v9, o0_1), key + 9u < live0[1]);
          o0_2 = select(o0_2, fma(vec4<f32>(weight[2]), v9, o0_2), key + 9u < live0[2]);
          o0_3 = select(o0_3, fma(vec4<f32>(weight[3]), v9, o0_3), key + 9u < live0[3]);
        }
        {
          let weight = weights[min(key + 10u, 64u - 1u) * 3u + min(firstOut + 0u, 2u - 1u)];
          o0_0 = select(o0_0, fma(vec4<f32>(weight[0]), v10, o0_0), key + 10u < live0[0]);
          o0_1 = select(o0_1, fma(vec4<f32>(weight[1]), v10, o0_1), key + 10u < live0[1]);
          o0_2 = select(o0_2, fma(vec4<f32>(weight[2]), v10, o0_2), key + 10u < live0[2]);
          o0_3 = select(o0_3, fma(vec4<f32>(weight[3]), v10, o0_3), key + 10u < live0[3]);
        }
        {
          let weight = weights[min(key + 11u, 64u - 1u) * 3u + min(firstOut + 0u, 2u - 1u)];
          o0_0 = select(o0_0, fma(vec4<f32>(weight[0]), v11, o0_0), key + 11u < live0[0]);
          o0_1 = select(o0_1, fma(vec4<f32>(weight[1]), v11, o0_1), key + 11u < live0[1]);
          o0_2 = select(o0_2, fma(vec4<f32>(weight[2]), v11, o0_2), key + 11u < live0[2]);
          o0_3 = select(o0_3, fma(vec4<f32>(weight[3]), v11, o0_3), key + 11u < live0[3]);
        }
        {
          let weight = weights[min(key + 12u, 64u - 1u) * 3u + min(firstOut + 0u, 2u - 1u)];
          o0_0 = select(o0_0, fma(vec4<f32>(weight[0]), v12, o0_0), key + 12u < live0[0]);
          o0_1 = select(o0_1, fma(vec4<f32>(weight[1]), v12, o0_1), key + 12u < live0[1]);
          o0_2 = select(o0_2, fma(vec4<f32>(weight[2]), v12, o0_2), key + 12u < live0[2]);
          o0_3 = select(o0_3, fma(vec4<f32>(weight[3]), v12, o0_3), key + 12u < live0[3]);
        }
        {
          let weight = weights[min(key + 13u, 64u - 1u) * 3u + min(firstOut + 0u, 2u - 1u)];
          o0_0 = select(o0_0, fma(vec4<f32>(weight[0]), v13, o0_0), key + 13u < live0[0]);
          o0_1 = select(o0_1, fma(vec4<f32>(weight[1]), v13, o0_1), key + 13u < live0[1]);
          o0_2 = select(o0_2, fma(vec4<f32>(weight[2]), v13, o0_2), key + 13u < live0[2]);
          o0_3 = select(o0_3, fma(vec4<f32>(weight[3]), v13, o0_3), key + 13u < live0[3]);
        }
        {
          let weight = weights[min(key + 14u, 64u - 1u) * 3u + min(firstOut + 0u, 2u - 1u)];
          o0_0 = select(o0_0, fma(vec4<f32>(weight[0]), v14, o0_0), key + 14u < live0[0]);
          o0_1 = select(o0_1, fma(vec4<f32>(weight[1]), v14, o0_1), key + 14u < live0[1]);
          o0_2 = select(o0_2, fma(vec4<f32>(weight[2]), v14, o0_2), key + 14u < live0[2]);
          o0_3 = select(o0_3, fma(vec4<f32>(weight[3]), v14, o0_3), key + 14u < live0[3]);
        }
        {
          let weight = weights[min(key + 15u, 64u - 1u) * 3u + min(firstOut + 0u, 2u - 1u)];
          o0_0 = select(o0_0, fma(vec4<f32>(weight[0]), v15, o0_0), key + 15u < live0[0]);
          o0_1 = select(o0_1, fma(vec4<f32>(weight[1]), v15, o0_1), key + 15u < live0[1]);
          o0_2 = select(o0_2, fma(vec4<f32>(weight[2]), v15, o0_2), key + 15u < live0[2]);
          o0_3 = select(o0_3, fma(vec4<f32>(weight[3]), v15, o0_3), key + 15u < live0[3]);
        }
      }
    }
    workgroupBarrier();
    let partial = select(group.z, 0u, whole);
    if (firstOut + 0u < 2u) {
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

    if (whole && (tile % 8u == 8u - 1u || tile == endTile - 1u)) {
      let chunkTile = tile / 8u * 8u;
      workgroupBarrier();
      if (softQuad < 2u && softLane == 0u) {
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
      for (var q = firstOut * 4u; q < min(firstOut + 1u, 2u) * 4u; q++) {
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

  if (firstTile < endTile && softQuad < 2u && softLane == 0u) {
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
