// GDN_KEEP: commits the first rows of windows, one workgroup a (window, value head): S ← g·S; S ← S + k·δᵀ
// with the g, k and δ that gdn.wgsl logged. Each word of the state sees the operations of that scan in its
// order, so the bits are those of a chain. Then the conv history, from the logged raw rows. Segments of the
// pass are the windows, and their rows those to commit. In place, as in gdn.wgsl.
#include pass.wgsl
#include gdn_common
@group(0) @binding(2) var<storage, read> windowLog: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> history: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> state: array<vec4<f32>>;

@compute @workgroup_size({THREADS})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let head = group.x;
  let segment = group.y;
  let column = thread % valueQuads;
  let part = thread / valueQuads;
  let rows = segmentWord(segment, 1u);
  let slot = segmentWord(segment, 2u);
  let first = logOf(slot);
  let at = slot * stateQuads + (head * {KEY_DIM}u + part * {PER_PART}u) * valueQuads + column;
#repeat j QUADS
  var s{j}x = state[at + (4u * {j}u) * valueQuads];
  var s{j}y = state[at + (4u * {j}u + 1u) * valueQuads];
  var s{j}z = state[at + (4u * {j}u + 2u) * valueQuads];
  var s{j}w = state[at + (4u * {j}u + 3u) * valueQuads];
#end
  for (var row = 0u; row < rows; row++) {
    let logRow = first + row * logQuads;
    let g = windowLog[logRow + head].x;
    let delta = windowLog[logRow + logDeltas + head * valueQuads + column];
    let key = logRow + logKeys + head / headsPerKey * keyQuads + part * {QUADS}u;
#repeat j QUADS
    let k{j} = windowLog[key + {j}u];
    s{j}x *= g;
    s{j}x = fma(vec4<f32>(k{j}.x), delta, s{j}x);
    s{j}y *= g;
    s{j}y = fma(vec4<f32>(k{j}.y), delta, s{j}y);
    s{j}z *= g;
    s{j}z = fma(vec4<f32>(k{j}.z), delta, s{j}z);
    s{j}w *= g;
    s{j}w = fma(vec4<f32>(k{j}.w), delta, s{j}w);
#end
  }
#repeat j QUADS
  state[at + (4u * {j}u) * valueQuads] = s{j}x;
  state[at + (4u * {j}u + 1u) * valueQuads] = s{j}y;
  state[at + (4u * {j}u + 2u) * valueQuads] = s{j}z;
  state[at + (4u * {j}u + 3u) * valueQuads] = s{j}w;
#end
  let old = segmentWord(segment, 5u) * depth * channels;
  let next = segmentWord(segment, 6u) * depth * channels;
  for (var index = thread; index < depth * items; index += {THREADS}u) {
    let item = index % items;
    if (!owns(item, head)) { continue; }
    let channel = channelOf(item, head);
    let place = index / items;
    // Raw row rows + place of (old history, the window's rows).
    var value: vec4<f32>;
    if (rows + place >= depth) {
      value = windowLog[first + (rows + place - depth) * logQuads + logRaw + channel];
    } else {
      value = history[old + (rows + place) * channels + channel];
    }
    history[next + place * channels + channel] = value;
  }
}
