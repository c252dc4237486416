// MERGE: combines what attend.wgsl left of each (row, head) into attended = out / sum ⊙ sigmoid(gate), a
// projection's input; the gate comes as 4 slices, added ascending. Called after attend in every pass; one workgroup a (row, head, 64 vec4 of dims).
//
// Exactness: attend.wgsl's `combine`, partials of a chunk in order, then chunks in order. 4 chunks are
// combined from their partials at a time, side by side; the chain over chunks is one thread's a vec4. The first
// of a chain is taken as it is, so a single partial passes unchanged. Partials past the row's position, which
// nobody wrote, are left out.
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
  return bitcast<f32>(passWords[passWords[8] + row * 64u + index]);
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

@group(0) @binding(2) var<storage, read> outs: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> stats: array<vec2<f32>>;
@group(0) @binding(4) var<storage, read> queryGate: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> attended: array<InputQuad>;

var<workgroup> chunkOuts: array<vec4<f32>, 4 * 64>;
var<workgroup> chunkStats: array<vec2<f32>, 4>;

// params: 0 queryGate stride (vec4), 1 attended stride, 2 vec4 from slice to slice
fn store(row: u32, column: u32, value: vec4<f32>) {
  attended[inputAt(row, column, param(1u)) / 4u] = asInputs(value);
}

@compute @workgroup_size(64 * 4)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let row = group.y;
  let slices = (64u + 64u - 1u) / 64u;
  let head = group.x / slices;
  let column = thread % 64u;
  let dim = group.x % slices * 64u + column;
  let lane = thread / 64u;
  let span = attentionSpan();
  let whole = span > 8u;
  let tiles = rowPosition(row) / 64u + 1u;
  let chunks = select((tiles + 8u - 1u) / 8u, 1u, whole);
  let each = select(8u / span, 1u, whole);
  let count = select((tiles + span - 1u) / span, 1u, whole);
  let first = (row * 24u + head) * attentionPartials() + select(0u, 1u, whole);
  let at = min(dim, 64u - 1u);

  var out = vec4<f32>(0.0);
  var top = 0.0;
  var sum = 0.0;
  for (var base = 0u; base < chunks; base += 4u) {
    let chunk = base + lane;
    if (chunk < chunks) {
      let start = first + chunk * each;
      let end = first + min((chunk + 1u) * each, count);
      var o = outs[start * 64u + at];
      var p = stats[start].x;
      var s = stats[start].y;
      for (var i = start + 1u; i < end; i++) {
        let next = max(p, stats[i].x);
        let fade = exp(p - next);
        let gain = exp(stats[i].x - next);
        o = fma(o, vec4<f32>(fade), outs[i * 64u + at] * gain);
        s = fma(s, fade, stats[i].y * gain);
        p = next;
      }
      chunkOuts[thread] = o;
      if (column == 0u) { chunkStats[lane] = vec2<f32>(p, s); }
    }
    workgroupBarrier();
    if (lane == 0u) {
      for (var i = 0u; i < min(4u, chunks - base); i++) {
        let stat = chunkStats[i];
        let o = chunkOuts[i * 64u + column];
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
  if (lane == 0u && dim < 64u) {
    let gateAt = row * param(0u) + (2u * head + 1u) * 64u + dim;
    var gate = queryGate[gateAt];
    gate += queryGate[gateAt + 1u * param(2u)];
    gate += queryGate[gateAt + 2u * param(2u)];
    gate += queryGate[gateAt + 3u * param(2u)];
    store(row, head * 256u + dim * 4u, out / sum * (1.0 / (1.0 + exp(-gate))));
  }
}
