// FILL: random codes and scales of a synthetic matrix, for benches without files. A word of codes is a hash
// of its index; a scale has either sign, and its bias puts the middle code near zero. How they lie: 1 a bf16
// pair a word, bias over scale; 2 an f16 pair; 3 sixteen f32 scales, then their biases.
@group(0) @binding(0) var<uniform> params: array<vec4<u32>, 4>;
@group(0) @binding(1) var<storage, read_write> words: array<u32>;

fn hash(seed: u32) -> u32 {
  var h = seed;
  h = (h ^ (h >> 16u)) * 0x85ebca6bu;
  h = (h ^ (h >> 13u)) * 0xc2b2ae35u;
  return h ^ (h >> 16u);
}

// params: 0 words, 1 seed, 2 middle code as f32 bits, 3 scale as f32 bits, 4 how scales lie (0: these are codes)
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let stride = groups.x * 256u;
  let form = params[1].x;
  for (var i = id.x; i < params[0].x; i += stride) {
    let isBias = form == 3u && i / 16u % 2u == 1u;
    let h = hash(select(i, i - 16u, isBias) * 2654435761u + params[0].y);
    if (form == 0u) { words[i] = h; continue; }
    let sign = select(-1.0, 1.0, (h & 1u) == 0u);
    let scale = sign * bitcast<f32>(params[0].w) * (0.75 + f32(h >> 24u) / 512.0);
    let rounded = bitcast<f32>(bitcast<u32>(scale) & 0xffff0000u);
    let bias = -rounded * bitcast<f32>(params[0].z);
    switch form {
      case 1u: { words[i] = (bitcast<u32>(rounded) >> 16u) | (bitcast<u32>(bias) & 0xffff0000u); }
      case 2u: { words[i] = pack2x16float(vec2<f32>(rounded, bias)); }
      default: { words[i] = bitcast<u32>(select(rounded, bias, isBias)); }
    }
  }
}
