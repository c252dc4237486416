// EMBED: out[row] = E[id of the row], in natural order. E lies as project.wgsl says; one part of it may
// hold only some of the rows, and rows of other parts are left alone.
#include pass.wgsl
@group(0) @binding(2) var<storage, read> codes: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> scales: array<u32>;
@group(0) @binding(4) var<storage, read_write> output: array<f32>;

// params: 0 width, 1 steps, 2 output stride, 3 groups a row, 4 columns a group, 5 first id here, 6 ids here
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let row = id.y;
  let column = id.x;
  if (row >= passRows() || column >= param(0u)) { return; }
  let token = rowId(row);
  if (token < param(5u) || token >= param(5u) + param(6u)) { return; }
  let w = token - param(5u);
  let step = column / 1024u;
  let lane = (column % 1024u) / 32u;
  let j = (column % 32u) / 4u;
  let word = codes[((w * param(1u) + step) * {CHUNKS}u + j / {VECTORS}u) * 32u + lane][column % 4u];
  let i = j % {VECTORS}u;
#if KIND < 16
  let code = f32((word >> (i * {KIND}u)) & ((1u << {KIND}u) - 1u));
  let pair = w * param(3u) + column / param(4u);
#if SCALE_BYTES == 4
  let value = bitcast<f32>(scales[pair] << 16u) * code + bitcast<f32>(scales[pair] & 0xffff0000u);
#else
  let value = bitcast<f32>(scales[2u * pair]) * code + bitcast<f32>(scales[2u * pair + 1u]);
#end
#end
#if KIND == 16
  let value = bitcast<f32>((word >> (i * 16u)) << 16u);
#end
#if KIND == 32
  let value = bitcast<f32>(word);
#end
  output[row * param(2u) + column] = value;
}
