// What the rungs share: operands packed as for src/backend/webgpu/kernels/tiles_common.wgsl (4-bit codes, groups
// of 64), and how a code becomes f16.
enable f16;
enable subgroups;
enable chromium_experimental_subgroup_matrix;
diagnostic(off, chromium.subgroup_matrix_uniformity);

// Blocks of 64 columns, how many of them a slice has, floats from row to row and from slice to slice of the output.
struct Params { blocks: u32, per: u32, stride: u32, slice: u32 }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> input: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> codes: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> scales: array<u32>;
@group(0) @binding(4) var<storage, read_write> output: array<f32>;

fn lowCodes(word: u32) -> vec2<f16> {
  return bitcast<vec2<f16>>((word & 0x000f000fu) | 0x64006400u) - vec2<f16>(1024.0h);
}
fn highCodes(word: u32) -> vec2<f16> {
  let sixteens = bitcast<vec2<f16>>((word & 0x00f000f0u) | 0x64006400u);
  return fma(sixteens, vec2<f16>(0.0625h), vec2<f16>(-64.0h));
}
fn widen(word: u32, scale: vec2<f16>, bias: vec2<f16>) -> vec4<u32> {
  return vec4<u32>(
    bitcast<u32>(fma(lowCodes(word), scale, bias)),
    bitcast<u32>(fma(highCodes(word), scale, bias)),
    bitcast<u32>(fma(lowCodes(word >> 8u), scale, bias)),
    bitcast<u32>(fma(highCodes(word >> 8u), scale, bias)),
  );
}
