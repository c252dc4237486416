// EMBED_TILES: out[row] = E[id of the row], in natural order, in f32. E lies as tiles_common.wgsl says; one part
// of it may hold only some of the rows, and rows of other parts are left alone.
#include pass.wgsl
@group(0) @binding(2) var<storage, read> codes: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> scales: array<u32>;
@group(0) @binding(4) var<storage, read_write> output: array<f32>;

// params: 0 width, 1 blocks of 64 columns, 2 output stride, 3 first id here, 4 ids here
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let row = id.y;
  let column = id.x;
  if (row >= passRows() || column >= param(0u)) { return; }
  let token = rowId(row);
  if (token < param(3u) || token >= param(3u) + param(4u)) { return; }
  let w = token - param(3u);
  let block = w / 16u * param(1u) + column / 64u;
  let lane = w % 16u + 16u * (column / 8u % 2u);
  let t = column / 16u % 4u;
  let j = column % 8u;
#if KIND == 16
  let word = codes[(block * 4u + t) * 32u + lane][j / 2u];
  let value = unpack2x16float(word)[j % 2u];
#else
  let at = block * {SCALE_WORDS}u * 16u + w % 16u;
#if KIND == 4
  let code = (codes[block * 32u + lane][t] >> (4u * (j / 2u + 4u * (j % 2u)))) & 15u;
  let pair = unpack2x16float(scales[at + t / {GROUP_TILES}u * 16u]);
  let value = fma(f32(code), pair.x, pair.y);
#else
  let word = codes[(block * 2u + t / 2u) * 32u + lane][t % 2u * 2u + j / 4u];
  let code = (word >> (8u * (j % 4u))) & 255u;
  let pair = at + t / {GROUP_TILES}u * 32u;
  let value = fma(f32(code), bitcast<f32>(scales[pair]), bitcast<f32>(scales[pair + 16u]));
#end
#end
  output[row * param(2u) + column] = value;
}
