// HISTORY: publishes a segment's conv history to its next slot: the last taps − 1 raw rows of (old history,
// the segment's rows), oldest first. One thread a channel, so a channel's words are read before they are
// written, by the same thread, and the slot may be updated in place.
#include pass.wgsl
@group(0) @binding(2) var<storage, read> qkv: array<f32>;
@group(0) @binding(3) var<storage, read_write> history: array<f32>;

// params: 0 qkv stride, 1 first float of the layer's histories
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let channel = id.x;
  let segment = id.y;
  if (channel >= {CHANNELS}u) { return; }
  let depth = {TAPS}u - 1u;
  let first = segmentWord(segment, 0u);
  let rows = segmentWord(segment, 1u);
  let source = param(1u) + segmentWord(segment, 2u) * depth * {CHANNELS}u + channel;
  let next = param(1u) + segmentWord(segment, 3u) * depth * {CHANNELS}u + channel;
  for (var j = 0u; j < depth; j++) {
    // Row rows − depth + j of the segment, or of the history where that is negative.
    var value: f32;
    if (rows + j >= depth) { value = qkv[(first + rows + j - depth) * param(0u) + channel]; }
    else { value = history[source + (rows + j) * {CHANNELS}u]; }
    history[next + j * {CHANNELS}u] = value;
  }
}
