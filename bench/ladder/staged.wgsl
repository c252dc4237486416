// STAGED: 8 rows of x by {WARPS} warps. A warp makes one tile of 16 outputs; W and x go through workgroup
// memory a block (64 columns) at a time, in rows of 72 halves (no bank conflicts). Codes are loaded {AHEAD}
// blocks ahead: ROLLED, they move from register to register; else the loop's body stands {COPIES} times.
//
// TOGETHER slices of K are made in one workgroup, by {TILES} warps each, and added there in the slices' order.
// One workgroup: x = tiles of outputs, y = rows of 8, z = slices that stay apart.
#include common
var<workgroup> w: array<vec4<u32>, {WARPS*144}>;
var<workgroup> xs: array<vec4<u32>, {TOGETHER*72}>;
#if TOGETHER > 1
var<workgroup> part: array<f32, {WARPS*128}>;
#end

// Here all codes come through shifts: highCodes makes no difference.
fn shifted(word: u32, scale: vec2<f16>, bias: vec2<f16>) -> vec4<u32> {
  return vec4<u32>(
    bitcast<u32>(fma(lowCodes(word), scale, bias)),
    bitcast<u32>(fma(lowCodes(word >> 4u), scale, bias)),
    bitcast<u32>(fma(lowCodes(word >> 8u), scale, bias)),
    bitcast<u32>(fma(lowCodes(word >> 12u), scale, bias)),
  );
}

@compute @workgroup_size({WARPS*32})
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(local_invocation_index) thread: u32,
  @builtin(subgroup_id) warp: u32,
  @builtin(subgroup_invocation_id) lane: u32,
) {
  let blocks = p.blocks;
  let ks = warp / {TILES}u;
  let wt = warp % {TILES}u;
  let firstBlock = (group.z * {TOGETHER}u + ks) * p.per;
  let steps = p.per;
  let last = steps - 1u;
  let row = lane % 16u;
  let half = lane / 16u;
  let put = warp * 144u + row * 9u + half;
  let block = (group.x * {TILES}u + wt) * blocks + firstBlock;
  let c = block * 32u + lane;
  let s = block * 16u + row;
#repeat d AHEAD
  var q{d} = codes[c + min({d}u, last) * 32u];
  var e{d} = scales[s + min({d}u, last) * 16u];
#end
  var acc = subgroup_matrix_result<f32, 8, 16>();
#repeat j PIECES
  let xi{j} = wt * 32u + lane + {j*32}u;
  let xFrom{j} = (group.y + xi{j} / 64u) * blocks * 64u + firstBlock * 64u + xi{j} % 64u;
  let xTo{j} = ks * 72u + xi{j} / 8u * 9u + xi{j} % 8u;
  var x{j} = input[xFrom{j}];
#end
  for (var step = 0u; step < steps; step += {COPIES}u) {
#repeat d COPIES
#if CONDITIONAL * d
    if (step + {d}u < steps) {
#else
    {
#end
      let pair = bitcast<vec2<f16>>(e{d});
      let code = q{d};
#repeat t 4
      w[put + {t*2}u] = shifted(code[{t}], pair.xx, pair.yy);
#end
      let ahead = min(step + {d+AHEAD}u, last);
#if ROLLED
#repeat i AHEAD_LESS_1
      q{i} = q{i+1};
      e{i} = e{i+1};
#end
      q{AHEAD_LESS_1} = codes[c + ahead * 32u];
      e{AHEAD_LESS_1} = scales[s + ahead * 16u];
#else
      q{d} = codes[c + ahead * 32u];
      e{d} = scales[s + ahead * 16u];
#end
#repeat j PIECES
      xs[xTo{j}] = x{j};
      x{j} = input[xFrom{j} + min(step + {d+1}u, last) * 64u];
#end
      workgroupBarrier();
#repeat k 4
      {
        let right = subgroupMatrixLoad<subgroup_matrix_right<f16, 8, 16>, col_major>(
          &xs, ks * 72u + {k*2}u, 9u);
        let left = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>(
          &w, warp * 144u + {k*2}u, 9u);
        acc = subgroupMatrixMultiplyAccumulate(left, right, acc);
      }
#end
      workgroupBarrier();
    }
#end
  }
#if TOGETHER > 1
  subgroupMatrixStore<col_major>(&part, warp * 128u, acc, 16u);
  workgroupBarrier();
  for (var i = thread; i < {TILES*128}u; i += {WARPS*32}u) {
    let tile = i / 128u;
    let within = i % 128u;
    var sum = part[tile * 128u + within];
#repeat k TOGETHER_LESS_1
    sum += part[({k+1}u * {TILES}u + tile) * 128u + within];
#end
    let column = (group.x * {TILES}u + tile) * 16u + within % 16u;
    output[group.z * p.slice + (group.y * 8u + within / 16u) * p.stride + column] = sum;
  }
#else
  let to = group.z * p.slice + group.y * 8u * p.stride + (group.x * {TILES}u + wt) * 16u;
  subgroupMatrixStore<col_major>(&output, to, acc, p.stride);
#end
}
