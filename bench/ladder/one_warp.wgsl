// ONE WARP: one row of x; {WARPS} warps (1 but for one rung) of {TILES} tiles of 16 outputs. W goes through workgroup
// memory in {PARTS} parts of a block (64 columns); x comes {AHEAD} blocks at a time, a vec4 a thread, and the matrix
// unit's other 7 rows are whatever lies there. Codes are loaded {AHEAD} blocks ahead, by as many copies of the body.
// With {TILES} = 2 and halves this is the loop of src/backend/webgpu/kernels/project_few.wgsl.
//
// X_FROM_STORAGE: the matrix unit loads x from storage. INTERLEAVED: a block's scales follow its codes in one buffer.
// SLICES_FIRST: neighbouring workgroups are slices of the same outputs. Without BARRIERS the text isn't allowed to
// rely on what it reads; it says what barriers cost.
// One workgroup: x = tiles of outputs, z = slices (the other way round with SLICES_FIRST).
#include common
var<workgroup> w: array<vec4<u32>, {WARPS*W_WARP}>;
#if X_FROM_STORAGE
#else
var<workgroup> xs: array<vec4<u32>, {X_LENGTH}>;
#end

@compute @workgroup_size({WARPS*32})
fn main(
  @builtin(workgroup_id) id: vec3<u32>,
  @builtin(subgroup_id) warp: u32,
  @builtin(subgroup_invocation_id) lane: u32,
) {
#if SLICES_FIRST
  let group = id.zyx;
#else
  let group = id;
#end
  let blocks = p.blocks;
  // Always zero. Where the compiler knows that, NVIDIA's driver makes code that is a sixth slower.
  let zero = warp / {WARPS}u;
  let firstBlock = (group.z + zero) * p.per;
  let steps = p.per;
  let last = steps - 1u;
  let row = lane % 16u;
  let half = lane / 16u;
  let put = warp * {W_WARP}u + row * {LINE}u + half;
  // Past a slice's end this reads on: the input buffer is longer than the row.
  let xAt = firstBlock * 64u + lane / 8u * 64u + lane % 8u;
#repeat m TILES
  let block{m} = ((group.x * {WARPS}u + warp % {WARPS}u) * {TILES}u + {m}u) * blocks + firstBlock;
  let c{m} = block{m} * {CODES_APART}u + lane;
  let s{m} = block{m} * {SCALES_APART}u + row + {SCALES_FROM}u;
#repeat d AHEAD
  var q{m}_{d} = codes[c{m} + min({d}u, last) * {CODES_APART}u];
  var e{m}_{d} = scales[s{m} + min({d}u, last) * {SCALES_APART}u];
#end
  var acc{m} = subgroup_matrix_result<f32, 8, 16>();
#end
#if X_FROM_STORAGE
#else
  var x = input[xAt];
#end
  for (var step = 0u; step < steps; step += {AHEAD}u) {
#repeat d AHEAD
#if CONDITIONAL * d
    if (step + {d}u < steps) {
#else
    {
#end
#repeat h PARTS
#repeat m TILES
      {
        let pair = bitcast<vec2<f16>>(e{m}_{d});
#repeat i WORDS
        w[put + {m*W_TILE}u + {i*2}u] = widen(q{m}_{d}[{h*WORDS}u + {i}u], pair.xx, pair.yy);
#end
#if h == LAST_PART
        q{m}_{d} = codes[c{m} + min(step + {d+AHEAD}u, last) * {CODES_APART}u];
        e{m}_{d} = scales[s{m} + min(step + {d+AHEAD}u, last) * {SCALES_APART}u];
#end
      }
#end
#if X_FROM_STORAGE
#else
#if d == 0
#if h == 0
      if (lane < {AHEAD*8}u) { xs[zero * {X_LENGTH}u + lane] = x; }
      x = input[xAt + min(step + {AHEAD}u, last) * 64u];
#end
#end
#end
#if BARRIERS
      workgroupBarrier();
#end
#repeat i WORDS
      {
#if X_FROM_STORAGE
        let right = subgroupMatrixLoad<subgroup_matrix_right<f16, 8, 16>, col_major>(
          &input, (firstBlock + step + {d}u) * 64u + {h*X_PART}u + {i*2}u, 2u);
#else
        let right = subgroupMatrixLoad<subgroup_matrix_right<f16, 8, 16>, col_major>(
          &xs, zero * {X_LENGTH}u + {d*8}u + {h*X_PART}u + {i*2}u, 3u);
#end
#repeat m TILES
        {
          let left = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>(
            &w, warp * {W_WARP}u + {m*W_TILE}u + {i*2}u, {LINE}u);
          acc{m} = subgroupMatrixMultiplyAccumulate(left, right, acc{m});
        }
#end
      }
#end
#if BARRIERS
      workgroupBarrier();
#end
#end
    }
#end
  }
#repeat m TILES
  {
    let tile = (group.x * {WARPS}u + warp % {WARPS}u) * {TILES}u + {m}u;
    let to = (group.z + zero) * p.slice + group.y * 8u * p.stride + tile * 16u;
    subgroupMatrixStore<col_major>(&output, to, acc{m}, p.stride);
  }
#end
}
