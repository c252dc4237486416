// SCAN, one workgroup a (segment, value head, {COLUMNS} columns of the value dim). For each row in order:
// S ← g·S; δ = β·(v − Sᵀk); S ← S + k·δᵀ; o = Sᵀq. The state stays in registers from the first row to the
// last: a thread holds one column's {PER_PART} rows of one of {PARTS} parts of the key dim.
// Sums over the key dim: rows of a part ascending by fma, then the parts ascending.
//
// In place: a workgroup reads its own words of the state before it writes them and touches no others, so
// state slot and next slot may be the same (one read_write binding); validatePlan has refused plans in which
// another segment uses a slot that is written. The conv history that the next pass reads is published by
// history.wgsl.
#include pass.wgsl
@group(0) @binding(2) var<storage, read> conv: array<f32>;
@group(0) @binding(3) var<storage, read> gates: array<f32>;
@group(0) @binding(4) var<storage, read_write> state: array<f32>;
@group(0) @binding(5) var<storage, read_write> output: array<f32>;

var<workgroup> partial: array<f32, {THREADS}>;
var<workgroup> delta: array<f32, {COLUMNS}>;

// params: 0 conv stride, 1 gates stride, 2 out stride, 3 first float of the layer's states
@compute @workgroup_size({THREADS})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let column = thread % {COLUMNS}u;
  let part = thread / {COLUMNS}u;
  let head = group.y;
  let segment = group.z;
  let keyHead = head / ({VALUE_HEADS}u / {KEY_HEADS}u);
  let valueColumn = group.x * {COLUMNS}u + column;
  let firstRow = segmentWord(segment, 0u);
  let rows = segmentWord(segment, 1u);
  let within = (head * {KEY_DIM}u + part * {PER_PART}u) * {VALUE_DIM}u + valueColumn;
  let slotFloats = {VALUE_HEADS}u * {KEY_DIM}u * {VALUE_DIM}u;
  let source = param(3u) + segmentWord(segment, 2u) * slotFloats + within;
#repeat i PER_PART
  var s{i} = state[source + {i}u * {VALUE_DIM}u];
#end
  for (var row = firstRow; row < firstRow + rows; row++) {
    let base = row * param(0u);
    let q = base + keyHead * {KEY_DIM}u + part * {PER_PART}u;
    let k = q + {KEY_HEADS}u * {KEY_DIM}u;
    let g = gates[row * param(1u) + 2u * head];
    var p = 0.0;
#repeat i PER_PART
    s{i} *= g;
    p = fma(s{i}, conv[k + {i}u], p);
#end
    partial[thread] = p;
    workgroupBarrier();
    if (part == 0u) {
      var predicted = 0.0;
      for (var i = 0u; i < {PARTS}u; i++) { predicted += partial[i * {COLUMNS}u + column]; }
      let v = conv[base + 2u * {KEY_HEADS}u * {KEY_DIM}u + head * {VALUE_DIM}u + valueColumn];
      delta[column] = gates[row * param(1u) + 2u * head + 1u] * (v - predicted);
    }
    workgroupBarrier();
    let d = delta[column];
    var o = 0.0;
#repeat i PER_PART
    s{i} = fma(conv[k + {i}u], d, s{i});
    o = fma(s{i}, conv[q + {i}u], o);
#end
    partial[thread] = o;
    workgroupBarrier();
    if (part == 0u) {
      var read = 0.0;
      for (var i = 0u; i < {PARTS}u; i++) { read += partial[i * {COLUMNS}u + column]; }
      output[row * param(2u) + head * {VALUE_DIM}u + valueColumn] = read;
    }
    workgroupBarrier();
  }
  let target_ = param(3u) + segmentWord(segment, 3u) * slotFloats + within;
#repeat i PER_PART
  state[target_ + {i}u * {VALUE_DIM}u] = s{i};
#end
}
