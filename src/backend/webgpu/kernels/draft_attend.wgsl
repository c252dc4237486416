// DRAFT_ATTEND: softmax(q·K / √dim)·V of a drafter's blocks over a part of their keys (draft_common.wgsl); draft_merge.wgsl
// ends it. One workgroup a (block, {QUERIES} queries of a KV head, part). Pages lie as attend.wgsl says.
//
// Queries are the block's rows times the KV head's heads; four are a quad. For scores, 32 neighbouring threads have
// a quad, and each the keys of its lane and 32 further on; for values, a thread has four dims of {V_QUADS} quads.
//
// Deterministic, and by the block alone: its start and rows say how its keys are cut. Drafts may differ by device.
#if KV_BITS == 16
enable f16;
#end
#include pass.wgsl
#include draft_common
@group(0) @binding(2) var<storage, read> query: array<vec4<f32>>;
#if KV_BITS == 16
@group(0) @binding(3) var<storage, read> keys: array<vec4<f16>>;
@group(0) @binding(4) var<storage, read> values: array<vec4<f16>>;
#else
@group(0) @binding(3) var<storage, read> keys: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> values: array<vec4<f32>>;
#end
// [row, head, part, dim / 4] and [row, head, part] of (top, sum).
@group(0) @binding(5) var<storage, read_write> outs: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read_write> stats: array<vec2<f32>>;

const quads = {QUERIES}u / 4u;
const perKv = {HEADS}u / {KV_HEADS}u;
// An odd stride keeps columns in different banks.
const line = quads + 1u;
// Weights, [key, quad].
var<workgroup> weights: array<vec4<f32>, {PAGE_ROWS} * line>;
var<workgroup> lanes: array<vec4<f32>, {THREADS}>;
var<workgroup> tops: array<vec4<f32>, quads>;
var<workgroup> fades: array<vec4<f32>, quads>;

// Below every score; a masked key's weight is set to zero all the same.
const lowest = -3.0e38;

// params: 0 window, 1 causal, 2 query stride in quads
@compute @workgroup_size({THREADS})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let segment = group.x;
  let kvHead = group.y / {QUERY_GROUPS}u;
  let firstQuery = group.y % {QUERY_GROUPS}u * {QUERIES}u;
  let firstRow = segmentWord(segment, 0u);
  let rows = segmentWord(segment, 1u);
  let count = rows * perKv;
  let seen = keysOf(segment, param(0u));
  let firstTile = seen.first / {PAGE_ROWS}u + group.z * seen.span;
  let endTile = min(firstTile + seen.span, (seen.end + {PAGE_ROWS}u - 1u) / {PAGE_ROWS}u);
  if (firstQuery >= count || firstTile >= endTile) { return; }

  let lane = thread % 32u;
  let quad = thread / 32u;
  // Of the quad's queries; past the last, it stands for them.
#repeat j 4
  let q{j} = min(firstQuery + quad * 4u + {j}u, count - 1u);
  let at{j} = (firstRow + q{j} / perKv) * param(2u) + (kvHead * perKv + q{j} % perKv) * {VECS}u;
#end
  let own = vec4<u32>(q0, q1, q2, q3) / perKv;
  let least = vec4<u32>(
    firstSeen(seen.start, own.x, param(0u)),
    firstSeen(seen.start, own.y, param(0u)),
    firstSeen(seen.start, own.z, param(0u)),
    firstSeen(seen.start, own.w, param(0u)),
  );
  let most = select(vec4<u32>(seen.end), own + seen.start + 1u, param(1u) != 0u);
  var top = vec4<f32>(lowest);
  let dim = thread % {VECS}u;
  let firstOut = thread / {VECS}u * {V_QUADS}u;
#repeat n V_QUADS
  var sum{n} = vec4<f32>(0.0);
#repeat j 4
  var o{n}_{j} = vec4<f32>(0.0);
#end
#end

  for (var tile = firstTile; tile < endTile; tile++) {
    let page = (pageOf(segment, tile * {PAGE_ROWS}u) * {KV_HEADS}u + kvHead) * {PAGE_ROWS}u * {VECS}u;
#repeat k 2
    var s{k} = vec4<f32>(0.0);
#end
    for (var step = 0u; step < {VECS}u; step += {K_AHEAD}u) {
#repeat a K_AHEAD
#repeat k 2
      let k{a}_{k} = vec4<f32>(keys[page + (step + {a}u) * {PAGE_ROWS}u + lane + {k*32}u]);
#end
#end
#repeat a K_AHEAD
      {
#repeat j 4
        let x{j} = query[at{j} + step + {a}u];
#end
#repeat k 2
#repeat i 4
        s{k} = fma(vec4<f32>(x0[{i}], x1[{i}], x2[{i}], x3[{i}]), vec4<f32>(k{a}_{k}[{i}]), s{k});
#end
#end
      }
#end
    }
#repeat k 2
    let key{k} = vec4<u32>(tile * {PAGE_ROWS}u + lane + {k*32}u);
    let live{k} = (key{k} >= least) & (key{k} < most);
    s{k} *= 1.0 / sqrt(f32({HEAD_DIM}u));
#end
    lanes[thread] = max(select(vec4<f32>(lowest), s0, live0), select(vec4<f32>(lowest), s1, live1));
    workgroupBarrier();
    var next = top;
    for (var i = 0u; i < 32u; i++) { next = max(next, lanes[quad * 32u + i]); }
#repeat k 2
    weights[(lane + {k*32}u) * line + quad] = select(vec4<f32>(0.0), exp(s{k} - next), live{k});
#end
    if (lane == 0u) {
      fades[quad] = exp(top - next);
      tops[quad] = next;
    }
    top = next;
    workgroupBarrier();
    if (firstOut < quads) {
#repeat n V_QUADS
      let quad{n} = min(firstOut + {n}u, quads - 1u);
      let fade{n} = fades[quad{n}];
      sum{n} *= fade{n};
#repeat j 4
      o{n}_{j} *= fade{n}[{j}];
#end
#end
      // Keys that no row of the block sees may hold anything; one that some row sees is the block's own.
      let end = min(seen.end - tile * {PAGE_ROWS}u, {PAGE_ROWS}u);
      for (var key = max(seen.first, tile * {PAGE_ROWS}u) - tile * {PAGE_ROWS}u; key < end; key += {V_AHEAD}u) {
#repeat a V_AHEAD
        let v{a} = vec4<f32>(values[page + min(key + {a}u, end - 1u) * {VECS}u + dim]);
#end
#repeat a V_AHEAD
#repeat n V_QUADS
        {
          let weight = select(
            vec4<f32>(0.0), weights[min(key + {a}u, end - 1u) * line + quad{n}], key + {a}u < end);
          sum{n} += weight;
#repeat j 4
          o{n}_{j} = fma(vec4<f32>(weight[{j}]), v{a}, o{n}_{j});
#end
        }
#end
#end
      }
    }
  }

#repeat n V_QUADS
#repeat j 4
  {
    let q = firstQuery + (firstOut + {n}u) * 4u + {j}u;
    if (firstOut + {n}u < quads && q < count) {
      let head = kvHead * perKv + q % perKv;
      let at = ((firstRow + q / perKv) * {HEADS}u + head) * {SPLITS}u + group.z;
      outs[at * {VECS}u + dim] = o{n}_{j};
      if (dim == 0u) { stats[at] = vec2<f32>(tops[firstOut + {n}u][{j}], sum{n}[{j}]); }
    }
  }
#end
#end
}
