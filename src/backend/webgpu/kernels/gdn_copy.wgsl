// GDN_COPY: brings the states of the chains that gdn.wgsl wrote `param(0)` slots further on home: what a scan
// that can't run in place has to do. For comparisons only. One thread a quad of a segment's state.
#include pass.wgsl
#include gdn_common
@group(0) @binding(2) var<storage, read_write> state: array<vec4<f32>>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let segment = id.y;
  if (id.x >= stateQuads || segmentWord(segment, 7u) != 0u) { return; }
  let next = segmentWord(segment, 3u);
  state[next * stateQuads + id.x] = state[(next + param(0u)) * stateQuads + id.x];
}
