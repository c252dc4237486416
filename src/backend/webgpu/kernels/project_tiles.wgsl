// PROJECT_TILES: y[slice, row, n] = Σ W[n, k] · x[row, k] over one slice of K, with x and W as f16. Called for
// every projection of the f16 class, prompt and decode alike; whoever reads y adds the slices, ascending.
//
// W: [blocks of 16 rows, blocks of 64 columns, chunks, 32 lanes] of 16 bytes; lane 16·h + r has columns
// 16·t + 8·h … + 7 of row r, t = 0 … 3. Codes become f16 in workgroup memory: up to 4 bits
// by an f16 fma with f16 scale and bias, 8 bits by an f32 fma, then rounded.
// x: [blocks of 8 rows, blocks of 64 columns, 8 rows, 64 columns] f16 (pass.wgsl inputAt).
// A workgroup makes {WM} × {MT} × 16 outputs of {WN} × {NT} × 8 rows; each of its {WM} × {WN} warps (32
// threads) makes {MT} × {NT} tiles of 16 × 8. Workgroup memory has rows of 72 halves: no bank conflicts.
//
// Exactness: a tile is one chain of 16 × 8 × 16 products over the slice's columns, ascending, f32
// accumulators; a slice is fixed by the matrix's shape. How many rows there are decides only which
// variant makes a tile, not how. Tiles past the rows read what lies there and are never read.
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

const threads = {WM}u * {WN}u * 32u;
// Rows of 64 halves and 8 of padding, in vec4; a tile has 16.
const line = 9u;
const tile = 16u * line;

var<workgroup> w: array<vec4<u32>, {WM} * {MT} * 144>;
var<workgroup> xs: array<vec4<u32>, {WN} * {NT} * 72>;

#if KIND == 4
// Eight codes: nibbles i and i + 4 are columns 2·i and 2·i + 1. 0x6400 is 1024, whose last bits count ones.
fn codes4(word: u32) -> vec2<f16> {
  return bitcast<vec2<f16>>((word & 0x000f000fu) | 0x64006400u) - vec2<f16>(1024.0h);
}
fn widen(word: u32, scale: vec2<f16>, bias: vec2<f16>) -> vec4<u32> {
  return vec4<u32>(
    bitcast<u32>(fma(codes4(word), scale, bias)),
    bitcast<u32>(fma(codes4(word >> 4u), scale, bias)),
    bitcast<u32>(fma(codes4(word >> 8u), scale, bias)),
    bitcast<u32>(fma(codes4(word >> 12u), scale, bias)),
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
// What the matrix unit does, in one thread: rows g and g + 8 of a tile by columns c and c + 1, 64 products each.
fn products(left: u32, right: u32, sums: vec4<f32>) -> vec4<f32> {
  var out = sums;
  for (var j = 0u; j < 8u; j++) {
    let top = w[left + j];
    let bottom = w[left + 8u * line + j];
    let first = xs[right + j];
    let second = xs[right + line + j];
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
#end

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
  {
    let to = origin + ({n*8}u + lane % 4u * 2u) * param(2u) + {m*16}u + lane / 4u;
    output[to] = acc{m}_{n}.x;
    output[to + param(2u)] = acc{m}_{n}.y;
    output[to + 8u] = acc{m}_{n}.z;
    output[to + 8u + param(2u)] = acc{m}_{n}.w;
  }
#end
#end
#end
}
