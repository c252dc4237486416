// READ: reads a buffer and keeps nothing, to find out how fast the device reads.
// A workgroup reads 64 KiB of its own: 16 loads of 256 lanes, 16 B a lane, neighbours side by side. What
// was read is folded into a word that is stored in one case of 2^32, so that no load can be left out.
@group(0) @binding(0) var<storage, read> data: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> found: array<u32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let first = group.x * 4096u + lane;
  var folded = vec4<u32>(0u);
  for (var i = 0u; i < 16u; i++) { folded ^= data[first + i * 256u]; }
  let word = folded.x ^ folded.y ^ folded.z ^ folded.w;
  if (word == 0x2545f491u) { found[0] = word; }
}
