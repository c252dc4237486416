// What the kernels of tiles share: the layout of their operands (tiles.ts packs it) and how codes become f16.
//
// W: [blocks of 16 rows, blocks of 64 columns, chunks, 32 lanes] of 16 bytes; lane 16·h + r has columns
// 16·t + 8·h … + 7 of row r, t = 0 … 3. Codes become f16: up to 4 bits by an f16 fma with f16 scale and bias,
// 8 bits by an f32 fma, then rounded.
// x: [blocks of 8 rows, blocks of 64 columns, 8 rows, 64 columns] f16 (pass.wgsl inputAt).
#if MATRIX
enable chromium_experimental_subgroup_matrix;
enable subgroups;
diagnostic(off, chromium.subgroup_matrix_uniformity);
#end
#include pass.wgsl
@group(0) @binding(2) var<storage, read> input: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> codes: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> scales: array<u32>;
@group(0) @binding(5) var<storage, read_write> output: array<f32>;

#if KIND == 4
// Eight codes: nibbles i and i + 4 are columns 2·i and 2·i + 1. 0x6400 is 1024, whose last bits count ones, so
// that a code four bits further up counts sixteens. Both are exact.
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
#end
#if KIND == 8
// Four codes, one a byte.
fn widen(word: u32, scale: f32, bias: f32) -> vec2<u32> {
  let code = vec4<f32>(vec4<u32>(word, word >> 8u, word >> 16u, word >> 24u) & vec4<u32>(255u));
  let value = fma(code, vec4<f32>(scale), vec4<f32>(bias));
  return vec2<u32>(pack2x16float(value.xy), pack2x16float(value.zw));
}
#end
#if MATRIX
#else
// What the matrix unit does, in one thread: rows g and g + 8 of a tile by columns c and c + 1. The kernel says
// how far apart rows lie in workgroup memory (line of W, apart of x) and how many vec4 of each are multiplied.
fn products(left: u32, right: u32, sums: vec4<f32>) -> vec4<f32> {
  var out = sums;
  for (var j = 0u; j < depth; j++) {
    let top = w[left + j];
    let bottom = w[left + 8u * line + j];
    let first = xs[right + j];
    let second = xs[right + apart + j];
    for (var i = 0u; i < 4u; i++) {
      let t = unpack2x16float(top[i]);
      let b = unpack2x16float(bottom[i]);
      let f = unpack2x16float(first[i]);
      let s = unpack2x16float(second[i]);
      out = fma(vec4<f32>(t.x, t.x, b.x, b.x), vec4<f32>(f.x, s.x, f.x, s.x), out);
      out = fma(vec4<f32>(t.y, t.y, b.y, b.y), vec4<f32>(f.y, s.y, f.y, s.y), out);
    }
  }
  return out;
}
fn store(to: u32, sums: vec4<f32>) {
  output[to] = sums.x;
  output[to + param(2u)] = sums.y;
  output[to + 8u] = sums.z;
  output[to + 8u + param(2u)] = sums.w;
}
#end
