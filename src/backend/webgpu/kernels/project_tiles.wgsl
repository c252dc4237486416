// PROJECT_TILES: y[slice, row, n] = Σ W[n, k] · x[row, k] over one slice of K, with x and W as f16. Called for
// the projections of the f16 class of passes that are too wide for project_few.wgsl; whoever reads y adds the
// slices, ascending.
//
// A workgroup makes {WM} × {MT} × 16 outputs of {WN} × {NT} × 8 rows; each of its {WM} × {WN} warps (32
// threads) makes {MT} × {NT} tiles of 16 × 8. Workgroup memory has rows of 72 halves: no bank conflicts.
//
// Exactness: a tile is one chain of 16 × 8 × 16 products over the slice's columns, ascending, f32
// accumulators; a slice is fixed by the matrix's shape. How many rows there are decides only which
// kernel and variant makes a tile, not how. Tiles past the rows read what lies there and are never read.
#include tiles_common

const threads = {WM}u * {WN}u * 32u;
// Rows of 64 halves and 8 of padding, in vec4; a tile has 16.
const line = 9u;
const apart = line;
const depth = 8u;
const tile = 16u * line;

var<workgroup> w: array<vec4<u32>, {WM} * {MT} * 144>;
var<workgroup> xs: array<vec4<u32>, {WN} * {NT} * 72>;

// params: 0 blocks of 64 columns, 1 of them a slice, 2 output stride, 3 floats from slice to slice,
// 4 first output column
@compute @workgroup_size({WM} * {WN} * 32)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(local_invocation_index) thread: u32,
#if MATRIX
  @builtin(subgroup_id) warp: u32,
  @builtin(subgroup_invocation_id) lane: u32,
#end
) {
#if MATRIX
#else
  let warp = thread / 32u;
  let lane = thread % 32u;
#end
  let blocks = param(0u);
  let firstBlock = group.z * param(1u);
  let steps = min(param(1u), blocks - firstBlock);
  let last = steps - 1u;
  let row = lane % 16u;
  let half = lane / 16u;
  let wm = warp % {WM}u;
  let wn = warp / {WM}u;
  let firstTile = group.y * {WN*NT}u;
  let put = warp * {OWN}u * tile + row * line + half;
#repeat m OWN
  let block{m} = (group.x * {WM*MT}u + warp * {OWN}u + {m}u) * blocks + firstBlock;
  let c{m} = block{m} * {CHUNKS}u * 32u + lane;
  let s{m} = block{m} * {SCALE_WORDS}u * 16u + row;
#repeat d PRE
#repeat j CHUNKS
  var q{m}_{d}_{j} = codes[c{m} + (min({d}u, last) * {CHUNKS}u + {j}u) * 32u];
#end
#repeat j SCALE_WORDS
  var e{m}_{d}_{j} = scales[s{m} + (min({d}u, last) * {SCALE_WORDS}u + {j}u) * 16u];
#end
#end
#end
#repeat j PIECES
  let xi{j} = thread + {j}u * threads;
  let xFrom{j} = ((firstTile + xi{j} / 64u) * blocks + firstBlock) * 64u + xi{j} % 64u;
  let xTo{j} = xi{j} / 8u * line + xi{j} % 8u;
  var x{j} = input[xFrom{j}];
#end
#repeat m MT
#repeat n NT
#if MATRIX
  var acc{m}_{n} = subgroup_matrix_result<f32, 8, 16>();
#else
  var acc{m}_{n} = vec4<f32>(0.0);
#end
#end
#end
  for (var step = 0u; step < steps; step++) {
    // The codes of a later step are on their way while this one is computed.
    let ahead = min(step + {PRE}u, last);
#repeat m OWN
    {
#repeat j SCALE_WORDS
      let scale{j} = e{m}_0_{j};
#end
#repeat j CHUNKS
      let code{j} = q{m}_0_{j};
#end
#repeat d LATER
#repeat j CHUNKS
      q{m}_{d}_{j} = q{m}_{d+1}_{j};
#end
#repeat j SCALE_WORDS
      e{m}_{d}_{j} = e{m}_{d+1}_{j};
#end
#end
#repeat j CHUNKS
      q{m}_{LATER}_{j} = codes[c{m} + (ahead * {CHUNKS}u + {j}u) * 32u];
#end
#repeat j SCALE_WORDS
      e{m}_{LATER}_{j} = scales[s{m} + (ahead * {SCALE_WORDS}u + {j}u) * 16u];
#end
      let at = put + {m}u * tile;
#if KIND == 4
#repeat j SCALE_WORDS
      let pair{j} = bitcast<vec2<f16>>(scale{j});
#end
#repeat t 4
#if t < GROUP_TILES
      w[at + {t*2}u] = widen(code0[{t}], pair0.xx, pair0.yy);
#else
      w[at + {t*2}u] = widen(code0[{t}], pair1.xx, pair1.yy);
#end
#end
#end
#if KIND == 8
#repeat t 2
#if t < GROUP_CHUNKS
      let f{t} = bitcast<f32>(scale0);
      let b{t} = bitcast<f32>(scale1);
#else
      let f{t} = bitcast<f32>(scale2);
      let b{t} = bitcast<f32>(scale3);
#end
      w[at + {t*4}u] = vec4<u32>(widen(code{t}.x, f{t}, b{t}), widen(code{t}.y, f{t}, b{t}));
      w[at + {t*4}u + 2u] = vec4<u32>(widen(code{t}.z, f{t}, b{t}), widen(code{t}.w, f{t}, b{t}));
#end
#end
#if KIND == 16
#repeat t 4
      w[at + {t*2}u] = code{t};
#end
#end
    }
#end
#repeat j PIECES
    xs[xTo{j}] = x{j};
    x{j} = input[xFrom{j} + min(step + 1u, last) * 64u];
#end
    workgroupBarrier();
#if MATRIX
#repeat k 4
    {
#repeat n NT
      let right{n} = subgroupMatrixLoad<subgroup_matrix_right<f16, 8, 16>, col_major>(
        &xs, (wn * {NT}u + {n}u) * 8u * line + {k*2}u, line);
#end
#repeat m MT
      {
        let left = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>(
          &w, (wm * {MT}u + {m}u) * tile + {k*2}u, line);
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
    acc{m}_{n} = products((wm * {MT}u + {m}u) * tile + lane / 4u * line,
      ((wn * {NT}u + {n}u) * 8u + lane % 4u * 2u) * line, acc{m}_{n});
#end
#end
#end
    workgroupBarrier();
  }
  let origin = group.z * param(3u) + (firstTile + wn * {NT}u) * 8u * param(2u) + param(4u)
    + (group.x * {WM*MT}u + wm * {MT}u) * 16u;
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
