// NORM: h += Σ updates; out = h · (1 ÷ √(mean of h² + eps)) · weight. One workgroup a row, for every norm of the
// residual stream. The updates are {SLICES} slices of a projection's output, added ascending and then to h as one
// sum; none where a projection adds to h itself, or nothing is pending. With `draws` only the rows that draw are
// normed, and take the updates. Out is a projection's input (pass.wgsl inputAt).
//
// What a drafter adds: without RESIDUAL there is no h, but the updates alone; FEATURE keeps h as a feature, in the
// slot's places; with CONV the updates go through the drafter's convolution first (dynamic_taps.wgsl).
//
// A width is a multiple of four, and a thread takes quads of columns. One row is bound by latency, so a thread
// loads all of its quads before it uses any, and keeps them; and few steps wait for the workgroup.
//
// Exactness: lane l of 1024 is one chain of fma over the columns of quads l, l + 1024, …; part p of 32 is the sum
// (sumOf) of lanes p, p + 32, …; the sum of squares is that of the parts. {THREADS} divides 1024, so that a lane
// is one thread's, and changes no bit.
#include pass.wgsl
@group(0) @binding(2) var<storage, read_write> hidden: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> weight: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> output: array<InputQuad>;
@group(0) @binding(5) var<storage, read> updates: array<vec4<f32>>;
#if FEATURE
@group(0) @binding(6) var<storage, read_write> features: array<vec4<f32>>;
#end
#if CONV
@group(0) @binding(6) var<storage, read> kernels: array<f32>;
@group(0) @binding(7) var<storage, read> base: array<vec4<f32>>;
#include dynamic_taps
#end

const lanes = 1024u;
const parts = 32u;
// The lanes, then the parts. Lanes without a quad stay zero.
var<workgroup> sums: array<f32, lanes + parts>;
var<workgroup> scale: f32;

fn addSquares(sum: f32, x: vec4<f32>) -> f32 {
  return fma(x.w, x.w, fma(x.z, x.z, fma(x.y, x.y, fma(x.x, x.x, sum))));
}

// Of the 32 sums first, first + step, …: four chains of every fourth, then these in pairs.
fn sumOf(first: u32, step: u32) -> f32 {
  var chains = vec4<f32>(0.0);
  for (var i = 0u; i < 32u; i += 4u) {
    let at = first + i * step;
    chains += vec4<f32>(sums[at], sums[at + step], sums[at + 2u * step], sums[at + 3u * step]);
  }
  return (chains.x + chains.y) + (chains.z + chains.w);
}

// params: 0 width, 1 hidden stride, 2 output stride, 3 eps, 4 draws, 5 update stride, 6 floats from slice to slice;
// FEATURE: 7 places a slot, 8 quads a place, 9 the feature's first
@compute @workgroup_size({THREADS})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let draws = param(4u) != 0u;
  if (group.y >= select(passRows(), passDraws(), draws)) { return; }
  var row = group.y;
  if (draws) { row = drawRow(group.y); }
  let quads = param(0u) / 4u;
  let first = row * param(1u) / 4u;
#if SLICES
  let firstUpdate = row * param(5u) / 4u;
  let slice = param(6u) / 4u;
#end
#if CONV
  let isFirst = row == segmentWord(rowSegment(row), 0u);
  let firstBefore = (row - select(1u, 0u, isFirst)) * param(5u) / 4u;
#end
#repeat i PER_THREAD
  // Without a branch the loads stay together: past the end, the last quad is read and left out below.
  let quad{i} = min(thread + {i*THREADS}u, quads - 1u);
#if RESIDUAL
  var x{i} = hidden[first + quad{i}];
#else
  var x{i} = vec4<f32>(0.0);
#end
  let weight{i} = weight[quad{i}];
#repeat s SLICES
  let update{i}_{s} = updates[firstUpdate + quad{i} + {s}u * slice];
#if CONV
  let before{i}_{s} = updates[firstBefore + quad{i} + {s}u * slice];
#end
#end
#end
#if SLICES
#repeat i PER_THREAD
  var update{i} = update{i}_0;
#repeat s SLICES
#if s > 0
  update{i} += update{i}_{s};
#end
#end
#if CONV
  var before{i} = before{i}_0;
#repeat s SLICES
#if s > 0
  before{i} += before{i}_{s};
#end
#end
  before{i} = select(before{i}, vec4<f32>(0.0), isFirst);
  update{i} = update{i} * tapOf(row, 0u, quad{i}, quads) + before{i} * tapOf(row, 1u, quad{i}, quads);
#end
  x{i} += update{i};
#end
#end
#repeat i PER_THREAD
  if (thread + {i*THREADS}u < quads) {
    let lane = (thread + {i*THREADS}u) % lanes;
    sums[lane] = addSquares(sums[lane], x{i});
  }
#end
  workgroupBarrier();
  if (thread < parts) { sums[lanes + thread] = sumOf(thread, parts); }
  workgroupBarrier();
  if (thread == 0u) { scale = 1.0 / sqrt(sumOf(lanes, 1u) / f32(param(0u)) + paramFloat(3u)); }
  workgroupBarrier();
#if FEATURE
  let slot = segmentWord(rowSegment(row), 3u);
  let kept = featureRow(slot, rowPlace(row), param(7u)) * param(8u) + param(9u);
#end
#repeat i PER_THREAD
  if (thread + {i*THREADS}u < quads) {
#if RESIDUAL * SLICES
    hidden[first + quad{i}] = x{i};
#end
#if FEATURE
    features[kept + quad{i}] = x{i};
#end
    let at = inputAt(group.y, 4u * quad{i}, param(2u)) / 4u;
    output[at] = asInputs(x{i} * scale * weight{i});
  }
#end
}
