// DIGITS (the result is not right yet): one row of x in two digits of 8 bits, high and low, as two of the matrix
// unit's 8 rows. Codes stay integers; their products with the digits are summed in i32 over a group of 64 columns,
// then scaled once in f32. One warp of {TILES} tiles of 16 outputs; codes and x come {AHEAD} blocks ahead.
//
// input: [blocks of 64 columns, 2 digits, 64 columns] i8; digitScales: for each block the scale of x's digits, and
// the sum of x, which the biases are multiplied with. One workgroup: x = tiles of outputs, z = slices.
#include common
@group(0) @binding(5) var<storage, read> digitScales: array<vec2<f32>>;
var<workgroup> w: array<vec4<u32>, {TILES*80}>;
var<workgroup> xs: array<vec4<u32>, {X_LENGTH}>;
var<workgroup> part: array<i32, {TILES*128}>;

@compute @workgroup_size(32)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(subgroup_id) warp: u32,
  @builtin(subgroup_invocation_id) lane: u32,
) {
  let blocks = p.blocks;
  let firstBlock = group.z * p.per;
  let steps = p.per;
  let last = steps - 1u;
  let row = lane % 16u;
  let half = lane / 16u;
  let put = warp * {TILES*80}u + row * 5u + half * 2u;
  let xTo = lane / 8u * 10u + lane % 8u + lane % 8u / 4u;
#repeat m TILES
  let block{m} = (group.x * {TILES}u + {m}u) * blocks + firstBlock;
  let c{m} = block{m} * 32u + lane;
  let s{m} = block{m} * 16u + row;
#repeat d AHEAD
  var q{m}_{d} = codes[c{m} + min({d}u, last) * 32u];
  var e{m}_{d} = scales[s{m} + min({d}u, last) * 16u];
#end
  var acc{m} = 0.0;
#end
  var x = input[(firstBlock + min(lane / 8u, last)) * 8u + lane % 8u];
  for (var step = 0u; step < steps; step += {AHEAD}u) {
#repeat d AHEAD
#if CONDITIONAL * d
    if (step + {d}u < steps) {
#else
    {
#end
#if d == 0
      if (lane < {AHEAD*8}u) { xs[warp * {X_LENGTH}u + xTo] = x; }
      x = input[(firstBlock + min(step + {AHEAD}u + lane / 8u, last)) * 8u + lane % 8u];
#end
#repeat m TILES
      {
        let low = q{m}_{d} & vec4<u32>(0x0f0f0f0fu);
        let high = (q{m}_{d} >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu);
        w[put + {m*80}u] = vec4<u32>(low.x, high.x, low.y, high.y);
        w[put + {m*80}u + 1u] = vec4<u32>(low.z, high.z, low.w, high.w);
        q{m}_{d} = codes[c{m} + min(step + {d+AHEAD}u, last) * 32u];
      }
#end
      let digits = digitScales[firstBlock + step + {d}u];
      workgroupBarrier();
      {
#repeat k 2
        let right{k} = subgroupMatrixLoad<subgroup_matrix_right<i8, 8, 32>, col_major>(
          &xs, warp * {X_LENGTH}u + {d*10}u + {k*2}u, 5u);
#end
#repeat m TILES
        {
          var sums = subgroup_matrix_result<i32, 8, 16>();
#repeat k 2
          let left{k} = subgroupMatrixLoad<subgroup_matrix_left<i8, 32, 16>, row_major>(
            &w, warp * {TILES*80}u + {m*80}u + {k*2}u, 5u);
#end
#repeat k 2
          sums = subgroupMatrixMultiplyAccumulate(left{k}, right{k}, sums);
#end
          subgroupMatrixStore<col_major>(&part, warp * {TILES*128}u + {m*128}u, sums, 16u);
        }
#end
      }
      workgroupBarrier();
#repeat m TILES
      {
        let at = warp * {TILES*128}u + {m*128}u + row;
        let sum = part[at] * 256 + part[at + 16u];
        let pair = unpack2x16float(e{m}_{d});
        acc{m} = fma(pair.x * digits.x, f32(sum), acc{m});
        acc{m} = fma(pair.y, digits.y, acc{m});
        e{m}_{d} = scales[s{m} + min(step + {d+AHEAD}u, last) * 16u];
      }
#end
    }
#end
  }
  if (lane < 16u) {
#repeat m TILES
    output[group.z * p.slice + (group.x * {TILES}u + {m}u) * 16u + lane] = acc{m};
#end
  }
}
