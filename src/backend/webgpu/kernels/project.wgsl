// PROJECT: y[row, n] (+)= Σ_k W[n, k] · x[row, k]. Called for every projection, prompt and decode.
//
// W: [rows of W, steps of 1024 columns, chunks, 32 lanes] of 16 bytes; a lane owns 32 neighbouring columns
// of each step. x: f32, permuted so that vec4 j of all 32 lanes lie side by side (pass.wgsl inputAt),
// which makes both reads contiguous. Columns past K are zero in x.
//
// Exactness: y[row, n] is summed per lane over steps ascending, in a step over vec4 j ascending, with fma
// alone; then over the 32 lanes by a fixed tree. Nothing depends on how many rows there are ({ROWS} of
// them share one reading of W), on which workgroup has them or on the subgroup's size. Accumulators are f32.
#include pass.wgsl
@group(0) @binding(2) var<storage, read> input: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> codes: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> scales: array<u32>;
@group(0) @binding(5) var<storage, read_write> output: array<f32>;

var<workgroup> partial: array<f32, {PARTIALS}>;

fn lanes(v: vec4<f32>) -> f32 { return (v.x + v.y) + (v.z + v.w); }

// params: 0 rows of W here, 1 steps, 2 input stride (vec4), 3 output stride, 4 accumulate, 5 draws,
// 6 groups a row, 7 columns a group, 8 first output column, 9 lines of workgroups
@compute @workgroup_size({THREADS})
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(local_invocation_index) thread: u32,
) {
  let lane = thread % 32u;
  let warp = thread / 32u;
  let wRows = param(0u);
  let steps = param(1u);
  let rows = select(passRows(), passDraws(), param(5u) != 0u);
  let firstRow = group.y * {ROWS}u;
  let slice = warp % {SLICES}u;
  let firstN = ((group.z * param(9u) + group.x) * ({THREADS}u / 32u / {SLICES}u) + warp / {SLICES}u) * {W_ROWS}u;
  if (firstRow >= rows) { return; }
#repeat r ROWS
  let x{r} = min(firstRow + {r}u, rows - 1u) * param(2u) + lane;
#end
#repeat n W_ROWS
  let w{n} = min(firstN + {n}u, wRows - 1u);
#repeat r ROWS
  var acc{n}_{r} = 0.0;
#end
#end
#repeat chunk CHUNKS
#repeat n W_ROWS
  var next{n}_{chunk} = codes[((w{n} * steps + min(slice, steps - 1u)) * {CHUNKS}u + {chunk}u) * 32u + lane];
#end
#end
  for (var step = slice; step < steps; step += {SLICES}u) {
    // The codes of the step after this one are on their way while this one is computed.
    let later = min(step + {SLICES}u, steps - 1u);
#repeat chunk CHUNKS
#repeat n W_ROWS
    let c{n}_{chunk} = next{n}_{chunk};
    next{n}_{chunk} = codes[((w{n} * steps + later) * {CHUNKS}u + {chunk}u) * 32u + lane];
#end
#end
#repeat r ROWS
    var sum{r} = vec4<f32>(0.0);
#end
#repeat n W_ROWS
#repeat r ROWS
    var d{n}_{r} = vec4<f32>(0.0);
#end
#end
#repeat chunk CHUNKS
#repeat i VECTORS
    {
#repeat r ROWS
      let v{r} = input[x{r} + (step * 8u + {chunk}u * {VECTORS}u + {i}u) * 32u];
      sum{r} += v{r};
#end
#repeat n W_ROWS
#if KIND == 4
      let q{n} = vec4<f32>((c{n}_{chunk} >> vec4<u32>({i}u * 4u)) & vec4<u32>(15u));
#end
#if KIND == 8
      let q{n} = vec4<f32>((c{n}_{chunk} >> vec4<u32>({i}u * 8u)) & vec4<u32>(255u));
#end
#if KIND == 16
      let q{n} = bitcast<vec4<f32>>((c{n}_{chunk} >> vec4<u32>({i}u * 16u)) << vec4<u32>(16u));
#end
#if KIND == 32
      let q{n} = bitcast<vec4<f32>>(c{n}_{chunk});
#end
#repeat r ROWS
      d{n}_{r} = fma(q{n}, v{r}, d{n}_{r});
#end
#end
    }
#end
#end
#if KIND < 16
    let at = min((step * 1024u + lane * 32u) / param(7u), param(6u) - 1u);
#repeat n W_ROWS
    {
#if SCALE_BYTES == 4
      let pair = scales[w{n} * param(6u) + at];
      let scale = bitcast<f32>(pair << 16u);
      let bias = bitcast<f32>(pair & 0xffff0000u);
#else
      let pair = 2u * (w{n} * param(6u) + at);
      let scale = bitcast<f32>(scales[pair]);
      let bias = bitcast<f32>(scales[pair + 1u]);
#end
#repeat r ROWS
      acc{n}_{r} = fma(scale, lanes(d{n}_{r}), acc{n}_{r});
      acc{n}_{r} = fma(bias, lanes(sum{r}), acc{n}_{r});
#end
    }
#end
#else
#repeat n W_ROWS
#repeat r ROWS
    acc{n}_{r} += lanes(d{n}_{r});
#end
#end
#end
  }
#repeat n W_ROWS
#repeat r ROWS
  partial[({n}u * {ROWS}u + {r}u) * {THREADS}u + thread] = acc{n}_{r};
#end
#end
  for (var half = 16u; half > 0u; half /= 2u) {
    workgroupBarrier();
    if (lane < half) {
      for (var i = thread; i < {PARTIALS}u; i += {THREADS}u) { partial[i] += partial[i + half]; }
    }
  }
  workgroupBarrier();
  // Lane n · ROWS + r of a row's first slice adds the slices in order and writes output (n, r).
  if (slice == 0u && lane < {W_ROWS}u * {ROWS}u) {
    var sum = 0.0;
    for (var i = 0u; i < {SLICES}u; i++) {
      sum += partial[lane * {THREADS}u + (warp + i) * 32u];
    }
    let n = firstN + lane / {ROWS}u;
    let row = firstRow + lane % {ROWS}u;
    if (n < wRows && row < rows) {
      let at = row * param(3u) + param(8u) + n;
      if (param(4u) != 0u) { sum += output[at]; }
      output[at] = sum;
    }
  }
}
