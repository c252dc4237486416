// KV_MOVE: brings a layer's keys and values of a kept path to the places of a chain, in a keep where a path isn't its
// window's first rows. One workgroup a (KV head, window). Rows ascend along a path, so that none is overwritten before
// it is moved, and a thread has its own dims of all. Pages lie as attend.wgsl says; four dims are {KV_WORDS} words.
#include pass.wgsl
@group(0) @binding(2) var<storage, read_write> keys: array<vec{KV_WORDS}<u32>>;
@group(0) @binding(3) var<storage, read_write> values: array<vec{KV_WORDS}<u32>>;

const vectors = {HEAD_DIM}u / 4u;

// Where a KV head's part of a page begins, and the row there.
struct Place { page: u32, row: u32 }
fn placeAt(window: u32, kvHead: u32, place: u32) -> Place {
  let page = pageOf(window, place) * {KV_HEADS}u + kvHead;
  return Place(page * {PAGE_ROWS}u * vectors, place % {PAGE_ROWS}u);
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let window = group.y;
  if (thread >= vectors) { return; }
  let path = pathOf(window);
  let start = segmentWord(window, 0u);
  for (var depth = 0u; depth < segmentWord(window, 1u); depth++) {
    let row = pathRow(path, depth);
    if (row == depth) { continue; }
    let old = placeAt(window, group.x, start + row);
    let next = placeAt(window, group.x, start + depth);
    keys[next.page + thread * {PAGE_ROWS}u + next.row] = keys[old.page + thread * {PAGE_ROWS}u + old.row];
    values[next.page + next.row * vectors + thread] = values[old.page + old.row * vectors + thread];
  }
}
