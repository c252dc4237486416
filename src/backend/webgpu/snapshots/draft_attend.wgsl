// DRAFT_ATTEND: softmax(q·K / √dim)·V of a drafter's blocks over a part of their keys (draft_common.wgsl); draft_merge.wgsl
// ends it. One workgroup a (block, 32 queries of a KV head, part). Pages lie as attend.wgsl says.
//
// Queries are the block's rows times the KV head's heads; four are a quad. For scores, 32 neighbouring threads have
// a quad, and each the keys of its lane and 32 further on; for values, a thread has four dims of 1 quads.
//
// Deterministic, and by the block alone: its start and rows say how its keys are cut. Drafts may differ by device.
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

// What a drafter's attention shares: which keys the rows of a block see, and how they are cut. A block's row r stands at
// start + r and sees the context's keys that lie less than `window` before it (0: all), then those of the
// block: all, or (causal) up to its own. Tiles of 64 keys of what its first row sees go to 16 parts at most.
struct Keys { start: u32, end: u32, first: u32, tiles: u32, span: u32 }

fn firstSeen(start: u32, row: u32, window: u32) -> u32 {
  let position = start + row;
  if (window == 0u || position < window) { return 0u; }
  return min(position + 1u - window, start);
}
fn keysOf(segment: u32, window: u32) -> Keys {
  let start = rowPosition(segmentWord(segment, 0u));
  let end = start + segmentWord(segment, 1u);
  let first = firstSeen(start, 0u, window);
  let tiles = (end + 64u - 1u) / 64u - first / 64u;
  return Keys(start, end, first, tiles, (tiles + 16u - 1u) / 16u);
}

@group(0) @binding(2) var<storage, read> query: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> keys: array<vec4<f16>>;
@group(0) @binding(4) var<storage, read> values: array<vec4<f16>>;
// [row, head, part, dim / 4] and [row, head, part] of (top, sum).
@group(0) @binding(5) var<storage, read_write> outs: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read_write> stats: array<vec2<f32>>;

const quads = 32u / 4u;
const perKv = 32u / 8u;
// An odd stride keeps columns in different banks.
const line = quads + 1u;
// Weights, [key, quad].
var<workgroup> weights: array<vec4<f32>, 64 * line>;
var<workgroup> lanes: array<vec4<f32>, 256>;
var<workgroup> tops: array<vec4<f32>, quads>;
var<workgroup> fades: array<vec4<f32>, quads>;

// Below every score; a masked key's weight is set to zero all the same.
const lowest = -3.0e38;

// params: 0 window, 1 causal, 2 query stride in quads
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let segment = group.x;
  let kvHead = group.y / 2u;
  let firstQuery = group.y % 2u * 32u;
  let firstRow = segmentWord(segment, 0u);
  let rows = segmentWord(segment, 1u);
  let count = rows * perKv;
  let seen = keysOf(segment, param(0u));
  let firstTile = seen.first / 64u + group.z * seen.span;
  let endTile = min(firstTile + seen.span, (seen.end + 64u - 1u) / 64u);
  if (firstQuery >= count || firstTile >= endTile) { return; }

  let lane = thread % 32u;
  let quad = thread / 32u;
  // Of the quad's queries; past the last, it stands for them.
  let q0 = min(firstQuery + quad * 4u + 0u, count - 1u);
  let at0 = (firstRow + q0 / perKv) * param(2u) + (kvHead * perKv + q0 % perKv) * 32u;
  let q1 = min(firstQuery + quad * 4u + 1u, count - 1u);
  let at1 = (firstRow + q1 / perKv) * param(2u) + (kvHead * perKv + q1 % perKv) * 32u;
  let q2 = min(firstQuery + quad * 4u + 2u, count - 1u);
  let at2 = (firstRow + q2 / perKv) * param(2u) + (kvHead * perKv + q2 % perKv) * 32u;
  let q3 = min(firstQuery + quad * 4u + 3u, count - 1u);
  let at3 = (firstRow + q3 / perKv) * param(2u) + (kvHead * perKv + q3 % perKv) * 32u;
  let own = vec4<u32>(q0, q1, q2, q3) / perKv;
  let least = vec4<u32>(
    firstSeen(seen.start, own.x, param(0u)),
    firstSeen(seen.start, own.y, param(0u)),
    firstSeen(seen.start, own.z, param(0u)),
    firstSeen(seen.start, own.w, param(0u)),
  );
  let most = select(vec4<u32>(seen.end), own + seen.start + 1u, param(1u) != 0u);
  var top = vec4<f32>(lowest);
  let dim = thread % 32u;
  let firstOut = thread / 32u * 1u;
  var sum0 = vec4<f32>(0.0);
  var o0_0 = vec4<f32>(0.0);
  var o0_1 = vec4<f32>(0.0);
  var o0_2 = vec4<f32>(0.0);
  var o0_3 = vec4<f32>(0.0);

  for (var tile = firstTile; tile < endTile; tile++) {
    let page = (pageOf(segment, tile * 64u) * 8u + kvHead) * 64u * 32u;
    var s0 = vec4<f32>(0.0);
    var s1 = vec4<f32>(0.0);
    for (var step = 0u; step < 32u; step += 4u) {
      let k0_0 = vec4<f32>(keys[page + (step + 0u) * 64u + lane + 0u]);
      let k0_1 = vec4<f32>(keys[page + (step + 0u) * 64u + lane + 32u]);
      let k1_0 = vec4<f32>(keys[page + (step + 1u) * 64u + lane + 0u]);
      let k1_1 = vec4<f32>(keys[page + (step + 1u) * 64u + lane + 32u]);
      let k2_0 = vec4<f32>(keys[page + (step + 2u) * 64u + lane + 0u]);
      let k2_1 = vec4<f32>(keys[page + (step + 2u) * 64u + lane + 32u]);
      let k3_0 = vec4<f32>(keys[page + (step + 3u) * 64u + lane + 0u]);
      let k3_1 = vec4<f32>(keys[page + (step + 3u) * 64u + lane + 32u]);
      {
        let x0 = query[at0 + step + 0u];
        let x1 = query[at1 + step + 0u];
        let x2 = query[at2 + step + 0u];
        let x3 = query[at3 + step + 0u];
        s0 = fma(vec4<f32>(x0[0], x1[0], x2[0], x3[0]), vec4<f32>(k0_0[0]), s0);
        s0 = fma(vec4<f32>(x0[1], x1[1], x2[1], x3[1]), vec4<f32>(k0_0[1]), s0);
        s0 = fma(vec4<f32>(x0[2], x1[2], x2[2], x3[2]), vec4<f32>(k0_0[2]), s0);
        s0 = fma(vec4<f32>(x0[3], x1[3], x2[3], x3[3]), vec4<f32>(k0_0[3]), s0);
        s1 = fma(vec4<f32>(x0[0], x1[0], x2[0], x3[0]), vec4<f32>(k0_1[0]), s1);
        s1 = fma(vec4<f32>(x0[1], x1[1], x2[1], x3[1]), vec4<f32>(k0_1[1]), s1);
        s1 = fma(vec4<f32>(x0[2], x1[2], x2[2], x3[2]), vec4<f32>(k0_1[2]), s1);
        s1 = fma(vec4<f32>(x0[3], x1[3], x2[3], x3[3]), vec4<f32>(k0_1[3]), s1);
      }
      {
        let x0 = query[at0 + step + 1u];
        let x1 = query[at1 + step + 1u];
        let x2 = query[at2 + step + 1u];
        let x3 = query[at3 + step + 1u];
        s0 = fma(vec4<f32>(x0[0], x1[0], x2[0], x3[0]), vec4<f32>(k1_0[0]), s0);
        s0 = fma(vec4<f32>(x0[1], x1[1], x2[1], x3[1]), vec4<f32>(k1_0[1]), s0);
        s0 = fma(vec4<f32>(x0[2], x1[2], x2[2], x3[2]), vec4<f32>(k1_0[2]), s0);
        s0 = fma(vec4<f32>(x0[3], x1[3], x2[3], x3[3]), vec4<f32>(k1_0[3]), s0);
        s1 = fma(vec4<f32>(x0[0], x1[0], x2[0], x3[0]), vec4<f32>(k1_1[0]), s1);
        s1 = fma(vec4<f32>(x0[1], x1[1], x2[1], x3[1]), vec4<f32>(k1_1[1]), s1);
        s1 = fma(vec4<f32>(x0[2], x1[2], x2[2], x3[2]), vec4<f32>(k1_1[2]), s1);
        s1 = fma(vec4<f32>(x0[3], x1[3], x2[3], x3[3]), vec4<f32>(k1_1[3]), s1);
      }
      {
        let x0 = query[at0 + step + 2u];
        let x1 = query[at1 + step + 2u];
        let x2 = query[at2 + step + 2u];
        let x3 = query[at3 + step + 2u];
        s0 = fma(vec4<f32>(x0[0], x1[0], x2[0], x3[0]), vec4<f32>(k2_0[0]), s0);
        s0 = fma(vec4<f32>(x0[1], x1[1], x2[1], x3[1]), vec4<f32>(k2_0[1]), s0);
        s0 = fma(vec4<f32>(x0[2], x1[2], x2[2], x3[2]), vec4<f32>(k2_0[2]), s0);
        s0 = fma(vec4<f32>(x0[3], x1[3], x2[3], x3[3]), vec4<f32>(k2_0[3]), s0);
        s1 = fma(vec4<f32>(x0[0], x1[0], x2[0], x3[0]), vec4<f32>(k2_1[0]), s1);
        s1 = fma(vec4<f32>(x0[1], x1[1], x2[1], x3[1]), vec4<f32>(k2_1[1]), s1);
        s1 = fma(vec4<f32>(x0[2], x1[2], x2[2], x3[2]), vec4<f32>(k2_1[2]), s1);
        s1 = fma(vec4<f32>(x0[3], x1[3], x2[3], x3[3]), vec4<f32>(k2_1[3]), s1);
      }
      {
        let x0 = query[at0 + step + 3u];
        let x1 = query[at1 + step + 3u];
        let x2 = query[at2 + step + 3u];
        let x3 = query[at3 + step + 3u];
        s0 = fma(vec4<f32>(x0[0], x1[0], x2[0], x3[0]), vec4<f32>(k3_0[0]), s0);
        s0 = fma(vec4<f32>(x0[1], x1[1], x2[1], x3[1]), vec4<f32>(k3_0[1]), s0);
        s0 = fma(vec4<f32>(x0[2], x1[2], x2[2], x3[2]), vec4<f32>(k3_0[2]), s0);
        s0 = fma(vec4<f32>(x0[3], x1[3], x2[3], x3[3]), vec4<f32>(k3_0[3]), s0);
        s1 = fma(vec4<f32>(x0[0], x1[0], x2[0], x3[0]), vec4<f32>(k3_1[0]), s1);
        s1 = fma(vec4<f32>(x0[1], x1[1], x2[1], x3[1]), vec4<f32>(k3_1[1]), s1);
        s1 = fma(vec4<f32>(x0[2], x1[2], x2[2], x3[2]), vec4<f32>(k3_1[2]), s1);
        s1 = fma(vec4<f32>(x0[3], x1[3], x2[3], x3[3]), vec4<f32>(k3_1[3]), s1);
      }
    }
    let key0 = vec4<u32>(tile * 64u + lane + 0u);
    let live0 = (key0 >= least) & (key0 < most);
    s0 *= 1.0 / sqrt(f32(128u));
    let key1 = vec4<u32>(tile * 64u + lane + 32u);
    let live1 = (key1 >= least) & (key1 < most);
    s1 *= 1.0 / sqrt(f32(128u));
    lanes[thread] = max(select(vec4<f32>(lowest), s0, live0), select(vec4<f32>(lowest), s1, live1));
    workgroupBarrier();
    var next = top;
    for (var i = 0u; i < 32u; i++) { next = max(next, lanes[quad * 32u + i]); }
    weights[(lane + 0u) * line + quad] = select(vec4<f32>(0.0), exp(s0 - next), live0);
    weights[(lane + 32u) * line + quad] = select(vec4<f32>(0.0), exp(s1 - next), live1);
    if (lane == 0u) {
      fades[quad] = exp(top - next);
      tops[quad] = next;
    }
    top = next;
    workgroupBarrier();
    if (firstOut < quads) {
      let quad0 = min(firstOut + 0u, quads - 1u);
      let fade0 = fades[quad0];
      sum0 *= fade0;
      o0_0 *= fade0[0];
      o0_1 *= fade0[1];
      o0_2 *= fade0[2];
      o0_3 *= fade0[3];
      // Keys that no row of the block sees may hold anything; one that some row sees is the block's own.
      let end = min(seen.end - tile * 64u, 64u);
      for (var key = max(seen.first, tile * 64u) - tile * 64u; key < end; key += 4u) {
        let v0 = vec4<f32>(values[page + min(key + 0u, end - 1u) * 32u + dim]);
        let v1 = vec4<f32>(values[page + min(key + 1u, end - 1u) * 32u + dim]);
        let v2 = vec4<f32>(values[page + min(key + 2u, end - 1u) * 32u + dim]);
        let v3 = vec4<f32>(values[page + min(key + 3u, end - 1u) * 32u + dim]);
        {
          let weight = select(
            vec4<f32>(0.0), weights[min(key + 0u, end - 1u) * line + quad0], key + 0u < end);
          sum0 += weight;
          o0_0 = fma(vec4<f32>(weight[0]), v0, o0_0);
          o0_1 = fma(vec4<f32>(weight[1]), v0, o0_1);
          o0_2 = fma(vec4<f32>(weight[2]), v0, o0_2);
          o0_3 = fma(vec4<f32>(weight[3]), v0, o0_3);
        }
        {
          let weight = select(
            vec4<f32>(0.0), weights[min(key + 1u, end - 1u) * line + quad0], key + 1u < end);
          sum0 += weight;
          o0_0 = fma(vec4<f32>(weight[0]), v1, o0_0);
          o0_1 = fma(vec4<f32>(weight[1]), v1, o0_1);
          o0_2 = fma(vec4<f32>(weight[2]), v1, o0_2);
          o0_3 = fma(vec4<f32>(weight[3]), v1, o0_3);
        }
        {
          let weight = select(
            vec4<f32>(0.0), weights[min(key + 2u, end - 1u) * line + quad0], key + 2u < end);
          sum0 += weight;
          o0_0 = fma(vec4<f32>(weight[0]), v2, o0_0);
          o0_1 = fma(vec4<f32>(weight[1]), v2, o0_1);
          o0_2 = fma(vec4<f32>(weight[2]), v2, o0_2);
          o0_3 = fma(vec4<f32>(weight[3]), v2, o0_3);
        }
        {
          let weight = select(
            vec4<f32>(0.0), weights[min(key + 3u, end - 1u) * line + quad0], key + 3u < end);
          sum0 += weight;
          o0_0 = fma(vec4<f32>(weight[0]), v3, o0_0);
          o0_1 = fma(vec4<f32>(weight[1]), v3, o0_1);
          o0_2 = fma(vec4<f32>(weight[2]), v3, o0_2);
          o0_3 = fma(vec4<f32>(weight[3]), v3, o0_3);
        }
      }
    }
  }

  {
    let q = firstQuery + (firstOut + 0u) * 4u + 0u;
    if (firstOut + 0u < quads && q < count) {
      let head = kvHead * perKv + q % perKv;
      let at = ((firstRow + q / perKv) * 32u + head) * 16u + group.z;
      outs[at * 32u + dim] = o0_0;
      if (dim == 0u) { stats[at] = vec2<f32>(tops[firstOut + 0u][0], sum0[0]); }
    }
  }
  {
    let q = firstQuery + (firstOut + 0u) * 4u + 1u;
    if (firstOut + 0u < quads && q < count) {
      let head = kvHead * perKv + q % perKv;
      let at = ((firstRow + q / perKv) * 32u + head) * 16u + group.z;
      outs[at * 32u + dim] = o0_1;
      if (dim == 0u) { stats[at] = vec2<f32>(tops[firstOut + 0u][1], sum0[1]); }
    }
  }
  {
    let q = firstQuery + (firstOut + 0u) * 4u + 2u;
    if (firstOut + 0u < quads && q < count) {
      let head = kvHead * perKv + q % perKv;
      let at = ((firstRow + q / perKv) * 32u + head) * 16u + group.z;
      outs[at * 32u + dim] = o0_2;
      if (dim == 0u) { stats[at] = vec2<f32>(tops[firstOut + 0u][2], sum0[2]); }
    }
  }
  {
    let q = firstQuery + (firstOut + 0u) * 4u + 3u;
    if (firstOut + 0u < quads && q < count) {
      let head = kvHead * perKv + q % perKv;
      let at = ((firstRow + q / perKv) * 32u + head) * 16u + group.z;
      outs[at * 32u + dim] = o0_3;
      if (dim == 0u) { stats[at] = vec2<f32>(tops[firstOut + 0u][3], sum0[3]); }
    }
  }
}
