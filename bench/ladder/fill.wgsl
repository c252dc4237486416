// FILL: words without a pattern, of which `keep` says the bits that stay random and `ones` those that are set.
struct Form { seed: u32, keep: u32, ones: u32 }
@group(0) @binding(0) var<uniform> form: Form;
@group(0) @binding(1) var<storage, read_write> words: array<u32>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  for (var i = id.x; i < arrayLength(&words); i += groups.x * 256u) {
    var hash = i * 2654435761u + form.seed;
    hash ^= hash >> 16u;
    hash *= 2246822519u;
    hash ^= hash >> 13u;
    hash *= 3266489917u;
    hash ^= hash >> 16u;
    words[i] = (hash & form.keep) | form.ones;
  }
}
