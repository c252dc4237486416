// ADD: h += Σ updates, and the sum of h² over the workgroup's {SPAN} columns. Called before every norm, which needs
// the sums; one workgroup a (span of columns, row). The updates are {SLICES} slices of a projection's output,
// added ascending and then to h as one sum; none where a projection adds to h itself, or nothing is pending.
// The sum of squares: the columns by a fixed tree. What only the rows that draw need is left to them.
#include pass.wgsl
@group(0) @binding(2) var<storage, read_write> hidden: array<f32>;
@group(0) @binding(3) var<storage, read_write> squares: array<f32>;
@group(0) @binding(4) var<storage, read> updates: array<f32>;

var<workgroup> sums: array<f32, {SPAN}>;

// params: 0 width, 1 hidden stride, 2 draws, 3 update stride, 4 floats from slice to slice
@compute @workgroup_size({SPAN})
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) thread: u32,
) {
  let draws = param(2u) != 0u;
  if (group.y >= select(passRows(), passDraws(), draws)) { return; }
  var row = group.y;
  if (draws) { row = drawRow(group.y); }
  let column = group.x * {SPAN}u + thread;
  var value = 0.0;
  if (column < param(0u)) {
    let at = row * param(1u) + column;
    value = hidden[at];
#if SLICES
    let first = row * param(3u) + column;
    var update = updates[first];
#repeat s SLICES
#if s > 0
    update += updates[first + {s}u * param(4u)];
#end
#end
    value += update;
    hidden[at] = value;
#end
  }
  sums[thread] = value * value;
  for (var half = {SPAN}u / 2u; half > 0u; half /= 2u) {
    workgroupBarrier();
    if (thread < half) { sums[thread] += sums[thread + half]; }
  }
  if (thread == 0u) { squares[group.y * groups.x + group.x] = sums[0]; }
}
