// PROJECT_FEW: project_tiles.wgsl (which see for x, W and y) for a pass of at most {NT} × 8 rows, or of one (ONE),
// bit by bit. Called for every projection of a plain decode step and of a small verify round of the f16 class.
//
// A workgroup is one warp (32 threads), which makes {MT} × {NT} tiles of 16 outputs by 8 rows, so that its
// barriers cost next to nothing. How many warps fit a core is what limits it: W goes through workgroup memory
// half a block (32 columns) at a time, in rows of 40 halves (no bank conflicts). Codes are loaded {CH} blocks
// ahead, by as many copies of the loop's body; where slices are EVEN, nothing in it is conditional, and what is
// left of {CH} stands behind it. x comes a block at a time; of one row, {CH} blocks at a time, a vec4 a thread: the
// matrix unit still makes 8 rows, and the others' x is whatever lies there.
//
// Exactness: the chain of products of each tile is project_tiles.wgsl's. Rows of y past the pass's, up to whole
// tiles, are overwritten with what nobody reads: a NaN in one row of a tile stays in that row.
//
// A slice is gone over {COUNT0} blocks at a time, while {WHOLE} of them are left; then {COUNT1} blocks once. EVEN: all
// slices have as many blocks. A block of x is {X_CHUNK} vec4 after the one before it (0: it takes its place).
#include tiles_common

// Rows of W: 32 halves and 8 of padding, in vec4. Rows of x: 64 and 8; with one row they overlap, just far
// enough apart to avoid conflicts.
const line = 5u;
const depth = 4u;
const tile = 16u * line;
#if ONE
const apart = 3u;
#else
const apart = 9u;
#end

var<workgroup> w: array<vec4<u32>, {MT} * 80>;
#if ONE
const xsLength = {CH}u * 8u + 24u;
#else
const xsLength = {NT}u * 72u;
#end
var<workgroup> xs: array<vec4<u32>, xsLength>;

// params: 0 blocks of 64 columns, 1 of them a slice, 2 output stride, 3 floats from slice to slice,
// 4 first output column
@compute @workgroup_size(32)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
#if MATRIX
  @builtin(subgroup_id) warp: u32,
  @builtin(subgroup_invocation_id) lane: u32,
#else
  @builtin(local_invocation_index) lane: u32,
#end
) {
#if MATRIX
#else
  let warp = 0u;
#end
  // Always zero. Where the compiler knows that, NVIDIA's driver makes code that is a sixth slower.
  let wAt = warp * {MT}u * tile;
  let xAt = warp * xsLength;
  let blocks = param(0u);
  let firstBlock = group.z * param(1u);
  let steps = min(param(1u), blocks - firstBlock);
  let last = steps - 1u;
  let row = lane % 16u;
  let put = wAt + row * line + lane / 16u;
#repeat m MT
  let block{m} = (group.x * {MT}u + {m}u) * blocks + firstBlock;
  let c{m} = block{m} * {CHUNKS}u * 32u + lane;
  let s{m} = block{m} * {SCALE_WORDS}u * 16u + row;
#repeat d CH
#repeat j CHUNKS
  var q{m}_{d}_{j} = codes[c{m} + (min({d}u, last) * {CHUNKS}u + {j}u) * 32u];
#end
#repeat j SCALE_WORDS
  var e{m}_{d}_{j} = scales[s{m} + (min({d}u, last) * {SCALE_WORDS}u + {j}u) * 16u];
#end
#end
#repeat n NT
#if MATRIX
  var acc{m}_{n} = subgroup_matrix_result<f32, 8, 16>();
#else
  var acc{m}_{n} = vec4<f32>(0.0);
#end
#end
#end
#if ONE
  var x = input[(firstBlock + min(lane / 8u, last)) * 64u + lane % 8u];
#else
#repeat j NT * 2
  let xFrom{j} = ({j/2}u * blocks + firstBlock) * 64u + {j%2}u * 32u + lane;
  let xTo{j} = xAt + {j*4}u * 9u + lane / 8u * 9u + lane % 8u;
  var x{j} = input[xFrom{j}];
#end
#end
  var step = 0u;
#repeat tail 2
#if tail
  {
#else
  for (; step + {WHOLE}u <= steps; step += {CH}u) {
#end
#repeat d COUNT{tail}
#if EVEN
    {
#else
    if (step + {d}u < steps) {
#end
      // The codes of the next chunk are on their way while this one is computed.
      let ahead = min(step + {CH+d}u, last);
#if ONE
#if d == 0
      if (lane < {CH}u * 8u) { xs[xAt + lane] = x; }
      x = input[(firstBlock + min(step + {CH}u + lane / 8u, last)) * 64u + lane % 8u];
#end
#else
#repeat j NT * 2
      xs[xTo{j}] = x{j};
      x{j} = input[xFrom{j} + min(step + {d+1}u, last) * 64u];
#end
#end
#repeat h 2
#repeat m MT
      {
        let at = put + {m}u * tile;
#if KIND == 4
        let pair = bitcast<vec2<f16>>(e{m}_{d}_{h*LAST_GROUP});
        w[at] = widen(q{m}_{d}_0[{h*2}u], pair.xx, pair.yy);
        w[at + 2u] = widen(q{m}_{d}_0[{h*2}u + 1u], pair.xx, pair.yy);
#end
#if KIND == 8
        let code = q{m}_{d}_{h};
#if h * LAST_GROUP
        let scale = bitcast<f32>(e{m}_{d}_2);
        let bias = bitcast<f32>(e{m}_{d}_3);
#else
        let scale = bitcast<f32>(e{m}_{d}_0);
        let bias = bitcast<f32>(e{m}_{d}_1);
#end
        w[at] = vec4<u32>(widen(code.x, scale, bias), widen(code.y, scale, bias));
        w[at + 2u] = vec4<u32>(widen(code.z, scale, bias), widen(code.w, scale, bias));
#end
#if KIND == 16
#if h
        w[at] = q{m}_{d}_2;
        w[at + 2u] = q{m}_{d}_3;
#else
        w[at] = q{m}_{d}_0;
        w[at + 2u] = q{m}_{d}_1;
#end
#end
#if h > tail
#repeat j CHUNKS
        q{m}_{d}_{j} = codes[c{m} + (ahead * {CHUNKS}u + {j}u) * 32u];
#end
#repeat j SCALE_WORDS
        e{m}_{d}_{j} = scales[s{m} + (ahead * {SCALE_WORDS}u + {j}u) * 16u];
#end
#end
      }
#end
      workgroupBarrier();
#if MATRIX
#repeat k 2
      {
#repeat n NT
        let right{n} = subgroupMatrixLoad<subgroup_matrix_right<f16, 8, 16>, col_major>(
          &xs, xAt + {n}u * 72u + {d*X_CHUNK}u + {h*4}u + {k*2}u, apart);
#end
#repeat m MT
        {
          let left = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>(
            &w, wAt + {m}u * tile + {k*2}u, line);
#repeat n NT
          acc{m}_{n} = subgroupMatrixMultiplyAccumulate(left, right{n}, acc{m}_{n});
#end
        }
#end
      }
#end
#else
#repeat m MT
#repeat n NT
      acc{m}_{n} = products(wAt + {m}u * tile + lane / 4u * line,
        xAt + {n}u * 72u + {d*X_CHUNK}u + {h*4}u + lane % 4u * 2u * apart, acc{m}_{n});
#end
#end
#end
      workgroupBarrier();
#end
    }
#end
  }
#end
  let origin = group.z * param(3u) + param(4u) + group.x * {MT}u * 16u;
#repeat m MT
#repeat n NT
#if MATRIX
  subgroupMatrixStore<col_major>(
    &output, origin + {n*8}u * param(2u) + {m*16}u, acc{m}_{n}, param(2u));
#else
  store(origin + ({n*8}u + lane % 4u * 2u) * param(2u) + {m*16}u + lane / 4u, acc{m}_{n});
#end
#end
#end
}
