// MERGE: combines what attend.wgsl left of each (row, head) into attended = out / sum ⊙ sigmoid(gate), a
// projection's input; the gate comes as {SLICES} slices, added ascending. Called after attend in every pass; one workgroup a (row, head, {COLUMNS} vec4 of dims).
//
// Exactness: attend.wgsl's `combine`, partials of a chunk in order, then chunks in order. {LANES} chunks are
// combined from their partials at a time, side by side; the chain over chunks is one thread's a vec4. The first
// of a chain is taken as it is, so a single partial passes unchanged. Partials past the row's position, which
// nobody wrote, are left out.
#include pass.wgsl
@group(0) @binding(2) var<storage, read> outs: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> stats: array<vec2<f32>>;
@group(0) @binding(4) var<storage, read> queryGate: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> attended: array<InputQuad>;

var<workgroup> chunkOuts: array<vec4<f32>, {LANES} * {COLUMNS}>;
var<workgroup> chunkStats: array<vec2<f32>, {LANES}>;

// params: 0 queryGate stride (vec4), 1 attended stride, 2 vec4 from slice to slice
fn store(row: u32, column: u32, value: vec4<f32>) {
  attended[inputAt(row, column, param(1u)) / 4u] = asInputs(value);
}

@compute @workgroup_size({COLUMNS} * {LANES})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let row = group.y;
  let slices = ({VECS}u + {COLUMNS}u - 1u) / {COLUMNS}u;
  let head = group.x / slices;
  let column = thread % {COLUMNS}u;
  let dim = group.x % slices * {COLUMNS}u + column;
  let lane = thread / {COLUMNS}u;
  let span = attentionSpan();
  let whole = span > {CHUNK_TILES}u;
  let tiles = rowPosition(row) / {PAGE_ROWS}u + 1u;
  let chunks = select((tiles + {CHUNK_TILES}u - 1u) / {CHUNK_TILES}u, 1u, whole);
  let each = select({CHUNK_TILES}u / span, 1u, whole);
  let count = select((tiles + span - 1u) / span, 1u, whole);
  let first = (row * {HEADS}u + head) * attentionPartials() + select(0u, 1u, whole);
  let at = min(dim, {VECS}u - 1u);

  var out = vec4<f32>(0.0);
  var top = 0.0;
  var sum = 0.0;
  for (var base = 0u; base < chunks; base += {LANES}u) {
    let chunk = base + lane;
    if (chunk < chunks) {
      let start = first + chunk * each;
      let end = first + min((chunk + 1u) * each, count);
      var o = outs[start * {VECS}u + at];
      var p = stats[start].x;
      var s = stats[start].y;
      for (var i = start + 1u; i < end; i++) {
        let next = max(p, stats[i].x);
        let fade = exp(p - next);
        let gain = exp(stats[i].x - next);
        o = fma(o, vec4<f32>(fade), outs[i * {VECS}u + at] * gain);
        s = fma(s, fade, stats[i].y * gain);
        p = next;
      }
      chunkOuts[thread] = o;
      if (column == 0u) { chunkStats[lane] = vec2<f32>(p, s); }
    }
    workgroupBarrier();
    if (lane == 0u) {
      for (var i = 0u; i < min({LANES}u, chunks - base); i++) {
        let stat = chunkStats[i];
        let o = chunkOuts[i * {COLUMNS}u + column];
        if (base + i == 0u) {
          out = o;
          top = stat.x;
          sum = stat.y;
        } else {
          let next = max(top, stat.x);
          let fade = exp(top - next);
          let gain = exp(stat.x - next);
          out = fma(out, vec4<f32>(fade), o * gain);
          sum = fma(sum, fade, stat.y * gain);
          top = next;
        }
      }
    }
    workgroupBarrier();
  }
  if (lane == 0u && dim < {VECS}u) {
    let gateAt = row * param(0u) + (2u * head + 1u) * {VECS}u + dim;
    var gate = queryGate[gateAt];
#repeat s SLICES
#if s > 0
    gate += queryGate[gateAt + {s}u * param(2u)];
#end
#end
    store(row, head * {HEAD_DIM}u + dim * 4u, out / sum * (1.0 / (1.0 + exp(-gate))));
  }
}
