// GDN_KEEP: commits a path of windows' rows, one workgroup a (window, value head, layer): S ← g·S; S ← S + k·δᵀ
// with the g, k and δ that gdn.wgsl logged. Each word of the state sees the operations of a scan in its
// order, so the bits are those of a chain. The conv history comes from the logged raw rows. Segments of the
// pass are the windows, and their rows the path's. In place, as in gdn.wgsl.
//
// A thread holds {PER_PART} key rows × 4 columns. It is bound by latency, so {ROWS} rows are loaded at once,
// and the history goes its way while the state comes.
#include pass.wgsl
#include gdn_common
@group(0) @binding(2) var<storage, read> windowLog: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> history: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> state: array<vec4<f32>>;

// params: quads from layer to layer, 0 of logs, 1 of histories, 2 of states
@compute @workgroup_size({THREADS})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let head = group.x;
  let segment = group.y;
  let column = thread % valueQuads;
  let part = thread / valueQuads;
  let rows = segmentWord(segment, 1u);
  let slot = segmentWord(segment, 2u);
  let first = group.z * param(0u) + logOf(slot);
  let path = pathOf(segment);
  let at = group.z * param(2u) + slot * stateQuads + (head * {KEY_DIM}u + part * {PER_PART}u) * valueQuads + column;
#repeat j QUADS
  var s{j}x = state[at + (4u * {j}u) * valueQuads];
  var s{j}y = state[at + (4u * {j}u + 1u) * valueQuads];
  var s{j}z = state[at + (4u * {j}u + 2u) * valueQuads];
  var s{j}w = state[at + (4u * {j}u + 3u) * valueQuads];
#end
  let old = group.z * param(1u) + segmentWord(segment, 5u) * depth * channels;
  let next = group.z * param(1u) + segmentWord(segment, 6u) * depth * channels;
  for (var index = thread; index < depth * items; index += {THREADS}u) {
    let item = index % items;
    if (!owns(item, head)) { continue; }
    let channel = channelOf(item, head);
    let place = index / items;
    // Raw row rows + place of (old history, the path's rows).
    var value: vec4<f32>;
    if (rows + place >= depth) {
      value = windowLog[first + pathRow(path, rows + place - depth) * logQuads + logRaw + channel];
    } else {
      value = history[old + (rows + place) * channels + channel];
    }
    history[next + place * channels + channel] = value;
  }
  for (var begin = 0u; begin < rows; begin += {ROWS}u) {
#repeat r ROWS
    // Past the last row, the last is read again and left out below.
    let row{r} = first + pathRow(path, min(begin + {r}u, rows - 1u)) * logQuads;
    let g{r} = windowLog[row{r} + head].x;
    let delta{r} = windowLog[row{r} + logDeltas + head * valueQuads + column];
#repeat j QUADS
    let k{r}_{j} = windowLog[row{r} + logKeys + head / headsPerKey * keyQuads + part * {QUADS}u + {j}u];
#end
#end
#repeat r ROWS
    if (begin + {r}u < rows) {
#repeat j QUADS
      s{j}x = fma(vec4<f32>(k{r}_{j}.x), delta{r}, s{j}x * g{r});
      s{j}y = fma(vec4<f32>(k{r}_{j}.y), delta{r}, s{j}y * g{r});
      s{j}z = fma(vec4<f32>(k{r}_{j}.z), delta{r}, s{j}z * g{r});
      s{j}w = fma(vec4<f32>(k{r}_{j}.w), delta{r}, s{j}w * g{r});
#end
    }
#end
  }
#repeat j QUADS
  state[at + (4u * {j}u) * valueQuads] = s{j}x;
  state[at + (4u * {j}u + 1u) * valueQuads] = s{j}y;
  state[at + (4u * {j}u + 2u) * valueQuads] = s{j}z;
  state[at + (4u * {j}u + 3u) * valueQuads] = s{j}w;
#end
}
