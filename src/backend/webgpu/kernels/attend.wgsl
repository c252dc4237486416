// ATTEND: softmax(q·K / √dim)·V of a block of neighbouring rows of one segment, for the query heads of one KV
// head, over a span of keys; one workgroup a (block, KV head, span). Called for every pass; merge.wgsl ends it.
//
// A layer's page: keys [KV head, dim / 4, {PAGE_ROWS} rows] and values [KV head, {PAGE_ROWS} rows, dim / 4] of vec4.
// Queries are [row, head, dim / 4]. A workgroup takes up to {BLOCK_ROWS} rows × {BLOCK_HEADS} heads, four
// queries a vec4 ("quad") of `weights`; what stands past the block's queries repeats its last and is not stored.
//
// Exactness: by absolute key position alone. Tiles of {PAGE_ROWS} keys from 0; in a tile
//   score = ((part 0 + part 1) + …) · (1 / √dim), a part is one fma chain over dim / {PARTS} dims, ascending;
//   top = max of scores; weight = exp(score - top); sum = 4 chains over keys l, l + 4, …, added in order;
//   out = one fma chain over the tile's keys, ascending.
// Tiles of a chunk of 512 keys combine in order, then chunks in order: combine (P, S, O) with (p, s, o) is
//   T = max(P, p); f = exp(P - T); e = exp(p - T); S = fma(S, f, s·e); O = fma(O, f, o·e); P = T.
// A workgroup combines what its span holds and merge.wgsl the rest, by the same expressions: spans are one tile,
// one chunk, or everything (then partial 0 is the chunk's and partial 1 the row's), and bits don't depend on it.
// A key past a row's own position changes nothing of it, whatever it holds. Accumulators are f32.
// TREE is for passes with trees: blocks of one row, whose keys from its segment's start on lie where its ancestors do.
#if KV_BITS == 16
enable f16;
#end
#include pass.wgsl
@group(0) @binding(2) var<storage, read> query: array<vec4<f32>>;
#if KV_BITS == 16
@group(0) @binding(3) var<storage, read> keys: array<vec4<f16>>;
@group(0) @binding(4) var<storage, read> values: array<vec4<f16>>;
#else
@group(0) @binding(3) var<storage, read> keys: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> values: array<vec4<f32>>;
#end
// [row, head, partial, dim / 4] and [row, head, partial] of (top, sum).
@group(0) @binding(5) var<storage, read_write> outs: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read_write> stats: array<vec2<f32>>;

// Scores, then weights, [key, quad]; the odd stride keeps columns in different banks.
var<workgroup> weights: array<vec4<f32>, {PAGE_ROWS} * {STRIDE}>;
var<workgroup> lanes: array<vec4<f32>, 4 * {QUADS}>;
var<workgroup> fades: array<vec4<f32>, {QUADS}>;
var<workgroup> gains: array<vec4<f32>, {QUADS}>;
#if TREE
// Of a tile's keys: where the page begins, and the row there.
var<workgroup> keyPages: array<u32, {PAGE_ROWS}>;
var<workgroup> keyRows: array<u32, {PAGE_ROWS}>;
#end

// Below every score; a masked key's weight is set to zero all the same.
const lowest = -3.0e38;

struct Block { firstRow: u32, rows: u32, firstHead: u32, heads: u32, firstCount: u32, partials: u32 }

fn queryRow(block: Block, q: u32) -> u32 {
  return block.firstRow + min(q / {BLOCK_HEADS}u, block.rows - 1u);
}
fn queryHead(block: Block, q: u32) -> u32 {
  return block.firstHead + min(q % {BLOCK_HEADS}u, block.heads - 1u);
}
fn isQuery(block: Block, q: u32) -> bool {
  return q / {BLOCK_HEADS}u < block.rows && q % {BLOCK_HEADS}u < block.heads;
}
// Keys of a tile that each query of a quad sees.
fn seen(block: Block, quad: u32, tile: u32) -> vec4<u32> {
  let rows = (vec4<u32>(0u, 1u, 2u, 3u) + quad * 4u) / {BLOCK_HEADS}u;
  let counts = block.firstCount + min(rows, vec4<u32>(block.rows - 1u));
  let first = vec4<u32>(tile * {PAGE_ROWS}u);
  return min(max(counts, first) - first, vec4<u32>({PAGE_ROWS}u));
}
#if TREE
// Where the key at a position of the row's lies.
fn placeOf(row: u32, position: u32) -> u32 {
  let segment = rowSegment(row);
  let start = rowPosition(segmentWord(segment, 0u));
  if (segmentWord(segment, 7u) != 2u || position < start || position > rowPosition(row)) { return position; }
  return start + pathRow(pathOf(row), position - start);
}
#end
fn partialOf(block: Block, q: u32, partial: u32) -> u32 {
  return (queryRow(block, q) * {HEADS}u + queryHead(block, q)) * block.partials + partial;
}

// params: 0 q stride (vec4)
@compute @workgroup_size({THREADS})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let kvHead = group.y / {HEAD_BLOCKS}u;
  let firstOfHeads = group.y % {HEAD_BLOCKS}u * {BLOCK_HEADS}u;
  let firstRow = blockWord(group.x, 0u);
  let block = Block(
    firstRow,
    blockWord(group.x, 1u),
    kvHead * ({HEADS}u / {KV_HEADS}u) + firstOfHeads,
    min({BLOCK_HEADS}u, {HEADS}u / {KV_HEADS}u - firstOfHeads),
    rowPosition(firstRow) + 1u,
    attentionPartials(),
  );
  let segment = rowSegment(firstRow);
  let span = attentionSpan();
  let whole = span > {CHUNK_TILES}u;
  let firstTile = group.z * span;
  let keyCount = block.firstCount + block.rows - 1u;
  let endTile = min(firstTile + span, (keyCount + {PAGE_ROWS}u - 1u) / {PAGE_ROWS}u);

  // Scores: a thread has a part of the dims, {Q_QUADS} quads and every {KEY_LANES}-th key.
  let part = thread / {PAGE_ROWS}u;
  let keyLane = thread % {KEY_LANES}u;
  let firstQuad = thread % {PAGE_ROWS}u / {KEY_LANES}u * {Q_QUADS}u;
#repeat n Q_QUADS
#repeat j LIVE{n}
  let q{n}_{j} = queryRow(block, (firstQuad + {n}u) * 4u + {j}u) * param(0u) +
    queryHead(block, (firstQuad + {n}u) * 4u + {j}u) * {VECS}u + part * {STEPS}u;
#end
#end
  // Softmax: a thread has a quad and every fourth key. The first of a quad holds its top and sum.
  let softQuad = thread / 4u;
  let softLane = thread % 4u;
  var top = vec4<f32>(0.0);
  var sum = vec4<f32>(0.0);
  var rowTop = vec4<f32>(0.0);
  var rowSum = vec4<f32>(0.0);
  // Values: a thread has four dims and {V_QUADS} quads.
  let dim = thread % {VECS}u;
  let firstOut = thread / {VECS}u * {V_QUADS}u;

  for (var tile = firstTile; tile < endTile; tile++) {
#if TREE
    if (thread < {PAGE_ROWS}u) {
      let place = placeOf(firstRow, tile * {PAGE_ROWS}u + thread);
      keyPages[thread] = (pageOf(segment, place) * {KV_HEADS}u + kvHead) * {PAGE_ROWS}u * {VECS}u;
      keyRows[thread] = place % {PAGE_ROWS}u;
    }
    workgroupBarrier();
#else
    let page = (pageOf(segment, tile * {PAGE_ROWS}u) * {KV_HEADS}u + kvHead) * {PAGE_ROWS}u * {VECS}u;
#end
    let fresh = tile % {CHUNK_TILES}u == 0u || tile == firstTile;
    {
#repeat n Q_QUADS
#repeat k K_EACH
      var s{n}_{k} = vec4<f32>(0.0);
#end
#end
#if TREE
#repeat k K_EACH
      let lane{k} = keyLane + {k}u * {KEY_LANES}u;
      let keyAt{k} = keyPages[lane{k}] + part * {STEPS}u * {PAGE_ROWS}u + keyRows[lane{k}];
#end
#else
      let keyAt = page + part * {STEPS}u * {PAGE_ROWS}u + keyLane;
#end
      for (var step = 0u; step < {STEPS}u; step += {K_AHEAD}u) {
#repeat a K_AHEAD
#repeat k K_EACH
#if TREE
        let k{a}_{k} = vec4<f32>(keys[keyAt{k} + (step + {a}u) * {PAGE_ROWS}u]);
#else
        let k{a}_{k} = vec4<f32>(keys[keyAt + (step + {a}u) * {PAGE_ROWS}u + {k}u * {KEY_LANES}u]);
#end
#end
#end
#repeat a K_AHEAD
#repeat n Q_QUADS
        {
          var x0 = vec4<f32>(0.0);
          var x1 = vec4<f32>(0.0);
          var x2 = vec4<f32>(0.0);
          var x3 = vec4<f32>(0.0);
#repeat j LIVE{n}
          x{j} = query[q{n}_{j} + step + {a}u];
#end
#repeat k K_EACH
#repeat j LIVE{n}
          s{n}_{k}[{j}] = fma(x{j}.x, k{a}_{k}.x, s{n}_{k}[{j}]);
          s{n}_{k}[{j}] = fma(x{j}.y, k{a}_{k}.y, s{n}_{k}[{j}]);
          s{n}_{k}[{j}] = fma(x{j}.z, k{a}_{k}.z, s{n}_{k}[{j}]);
          s{n}_{k}[{j}] = fma(x{j}.w, k{a}_{k}.w, s{n}_{k}[{j}]);
#end
#end
        }
#end
#end
      }
      for (var p = 0u; p < {PARTS}u; p++) {
        if (part == p) {
#repeat k K_EACH
#repeat n Q_QUADS
          {
            let at = (keyLane + {k}u * {KEY_LANES}u) * {STRIDE}u + firstQuad + {n}u;
            weights[at] = select(weights[at] + s{n}_{k}, s{n}_{k}, p == 0u);
          }
#end
#end
        }
        workgroupBarrier();
      }
    }
    let live = seen(block, softQuad, tile);
    var tileTop = vec4<f32>(lowest);
    if (softQuad < {QUADS}u) {
      for (var key = softLane; key < {PAGE_ROWS}u; key += 4u) {
        let at = key * {STRIDE}u + softQuad;
        let score = weights[at] * (1.0 / sqrt(f32({HEAD_DIM}u)));
        weights[at] = score;
        tileTop = max(tileTop, select(vec4<f32>(lowest), score, vec4<u32>(key) < live));
      }
      lanes[thread] = tileTop;
    }
    workgroupBarrier();
    var laneSum = vec4<f32>(0.0);
    if (softQuad < {QUADS}u) {
      for (var i = 0u; i < 4u; i++) { tileTop = max(tileTop, lanes[softQuad * 4u + i]); }
      for (var key = softLane; key < {PAGE_ROWS}u; key += 4u) {
        let at = key * {STRIDE}u + softQuad;
        let weight = select(vec4<f32>(0.0), exp(weights[at] - tileTop), vec4<u32>(key) < live);
        weights[at] = weight;
        laneSum += weight;
      }
    }
    workgroupBarrier();
    if (softQuad < {QUADS}u) { lanes[thread] = laneSum; }
    workgroupBarrier();
    if (softQuad < {QUADS}u && softLane == 0u) {
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

#repeat n V_QUADS
#repeat j 4
    var o{n}_{j} = vec4<f32>(0.0);
#end
#end
    if (firstOut < {QUADS}u) {
#if TREE
#else
      let valueAt = page + dim;
#end
      // Keys of this tile that the first row sees, and the last.
      let all = min(max(block.firstCount, tile * {PAGE_ROWS}u) - tile * {PAGE_ROWS}u, {PAGE_ROWS}u);
      let most = min(keyCount - tile * {PAGE_ROWS}u, {PAGE_ROWS}u);
      var key = 0u;
#repeat masked 2
#if masked == 0
      for (; key + {V_AHEAD}u <= all; key += {V_AHEAD}u) {
#else
#repeat n V_QUADS
      let live{n} = seen(block, firstOut + {n}u, tile);
#end
      for (; key < most; key += {V_AHEAD}u) {
#end
#repeat a V_AHEAD
#if TREE
        let key{a} = min(key + {a}u, most - 1u);
        let v{a} = vec4<f32>(values[keyPages[key{a}] + keyRows[key{a}] * {VECS}u + dim]);
#else
        let v{a} = vec4<f32>(values[valueAt + min(key + {a}u, most - 1u) * {VECS}u]);
#end
#end
#repeat a V_AHEAD
#repeat n V_QUADS
        {
          let weight = weights[min(key + {a}u, {PAGE_ROWS}u - 1u) * {STRIDE}u + min(firstOut + {n}u, {QUADS}u - 1u)];
#repeat j 4
#if masked == 0
          o{n}_{j} = fma(vec4<f32>(weight[{j}]), v{a}, o{n}_{j});
#else
          o{n}_{j} = select(o{n}_{j}, fma(vec4<f32>(weight[{j}]), v{a}, o{n}_{j}), key + {a}u < live{n}[{j}]);
#end
#end
        }
#end
#end
      }
#end
    }
    workgroupBarrier();
    let partial = select(group.z, 0u, whole);
#repeat n V_QUADS
    if (firstOut + {n}u < {QUADS}u) {
      let some = seen(block, firstOut + {n}u, tile) > vec4<u32>(0u);
      let fade = fades[firstOut + {n}u];
      let gain = gains[firstOut + {n}u];
#repeat j 4
      if (some[{j}] && isQuery(block, (firstOut + {n}u) * 4u + {j}u)) {
        let at = partialOf(block, (firstOut + {n}u) * 4u + {j}u, partial) * {VECS}u + dim;
        if (fresh) { outs[at] = o{n}_{j}; }
        else { outs[at] = fma(outs[at], vec4<f32>(fade[{j}]), o{n}_{j} * gain[{j}]); }
      }
#end
    }
#end

    if (whole && (tile % {CHUNK_TILES}u == {CHUNK_TILES}u - 1u || tile == endTile - 1u)) {
      let chunkTile = tile / {CHUNK_TILES}u * {CHUNK_TILES}u;
      workgroupBarrier();
      if (softQuad < {QUADS}u && softLane == 0u) {
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
      for (var q = firstOut * 4u; q < min(firstOut + {V_QUADS}u, {QUADS}u) * 4u; q++) {
        if (isQuery(block, q) && seen(block, q / 4u, chunkTile)[q % 4u] > 0u) {
          let chunk = partialOf(block, q, 0u) * {VECS}u + dim;
          let row = chunk + {VECS}u;
          if (chunkTile == 0u) { outs[row] = outs[chunk]; }
          else {
            let fade = vec4<f32>(fades[q / 4u][q % 4u]);
            outs[row] = fma(outs[row], fade, outs[chunk] * gains[q / 4u][q % 4u]);
          }
        }
      }
    }
  }

  if (firstTile < endTile && softQuad < {QUADS}u && softLane == 0u) {
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
