// HALF PIPELINE: 8 rows of x by {WARPS} warps of one tile of 16 outputs each. Half a block (32 columns) is made in one
// half of workgroup memory while the half block before is multiplied out of the other: one barrier for each,
// where a block took two. Codes are loaded {AHEAD} blocks ahead and move from register to register.
//
// One workgroup: x = tiles of outputs, y = rows of 8, z = slices.
#include common
var<workgroup> w: array<vec4<u32>, {WARPS*160}>;
var<workgroup> xs: array<vec4<u32>, 80>;

@compute @workgroup_size({WARPS*32})
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(local_invocation_index) thread: u32,
  @builtin(subgroup_id) warp: u32,
  @builtin(subgroup_invocation_id) lane: u32,
) {
  let blocks = p.blocks;
  let firstBlock = group.z * p.per;
  let steps = p.per;
  let last = steps - 1u;
  let row = lane % 16u;
  let half = lane / 16u;
  let put = warp * 80u + row * 5u + half;
  let block = (group.x * {WARPS}u + warp) * blocks + firstBlock;
  let c = block * 32u + lane;
  let s = block * 16u + row;
#repeat d AHEAD
  var q{d} = codes[c + min({d}u, last) * 32u];
  var e{d} = scales[s + min({d}u, last) * 16u];
#end
  var acc = subgroup_matrix_result<f32, 8, 16>();
#repeat j PIECES
  let xi{j} = thread + {j*32}u;
  let xFrom{j} = ((group.y + xi{j} / 64u) * blocks + firstBlock) * 64u + xi{j} % 64u;
  let xHalf{j} = xi{j} % 8u / 4u;
  let xTo{j} = xHalf{j} * 40u + xi{j} / 8u * 5u + xi{j} % 4u;
  var x{j} = input[xFrom{j}];
#end
  {
    let pair = bitcast<vec2<f16>>(e0);
    let code = q0;
    w[put] = widen(code[0], pair.xx, pair.yy);
    w[put + 2u] = widen(code[1], pair.xx, pair.yy);
  }
#repeat j PIECES
  if (xHalf{j} == 0u) { xs[xTo{j}] = x{j}; }
#end
  workgroupBarrier();
  for (var step = 0u; step < steps; step++) {
#repeat h 2
    {
      let pair = bitcast<vec2<f16>>(e0);
      let code = q0;
#if h == 0
      // The second half is made while the first is multiplied.
      w[put + {HALF}u] = widen(code[2], pair.xx, pair.yy);
      w[put + {HALF}u + 2u] = widen(code[3], pair.xx, pair.yy);
#else
      // The next block's first half, while this one's second is multiplied.
      w[put] = widen(code[0], pair.xx, pair.yy);
      w[put + 2u] = widen(code[1], pair.xx, pair.yy);
#end
    }
#repeat j PIECES
#if h == 0
    if (xHalf{j} == 1u) { xs[xTo{j}] = x{j}; }
    x{j} = input[xFrom{j} + min(step + 1u, last) * 64u];
#else
    if (xHalf{j} == 0u) { xs[xTo{j}] = x{j}; }
#end
#end
#repeat k 2
    {
      let left = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>(
        &w, {h*HALF}u + warp * 80u + {k*2}u, 5u);
      let right = subgroupMatrixLoad<subgroup_matrix_right<f16, 8, 16>, col_major>(
        &xs, {h*40}u + {k*2}u, 5u);
      acc = subgroupMatrixMultiplyAccumulate(left, right, acc);
    }
#end
#if h == 0
#repeat i AHEAD_LESS_1
    q{i} = q{i+1};
    e{i} = e{i+1};
#end
    {
      let ahead = min(step + {AHEAD}u, last);
      q{AHEAD_LESS_1} = codes[c + ahead * 32u];
      e{AHEAD_LESS_1} = scales[s + ahead * 16u];
    }
#end
    workgroupBarrier();
#end
  }
  let to = group.z * p.slice + group.y * 8u * p.stride + (group.x * {WARPS}u + warp) * 16u;
  subgroupMatrixStore<col_major>(&output, to, acc, p.stride);
}
