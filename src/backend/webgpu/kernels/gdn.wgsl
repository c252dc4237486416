// GDN: a Gated DeltaNet layer between its projections, one workgroup a (segment, value head). For each row
// in order:
//   c = silu(Σ_j w[j] · m[t − taps + 1 + j]), taps in order by fma, m the raw q, k and v of the row; q and k
//   divided by their length (q also by √dk); g = exp(rate · softplus(a + bias)), β = sigmoid(b);
//   S ← g·S; δ = β·(v − Sᵀk); S ← S + k·δᵀ; o = Sᵀq; y = RMSNorm(o) · weight · silu(z), norm first.
// Sums over the key dim: rows of one of {PARTS} parts ascending by fma, then the parts ascending. Sums of
// squares (lengths of q and k, the norm): four neighbours by fma, then these ascending. q, k, v, z, a and b
// come as {SLICES} sums over parts of their projection's input, which are added in order.
//
// A thread holds {PER_PART} key rows × 4 columns of the state in registers from the first row to the last.
// Rows go by blocks of {BLOCK}, whose q, k and v are made by all threads and lie in workgroup memory. A
// row takes one barrier: every thread adds up the parts' predictions of its own columns, and the parts of
// o are added after the next row's barrier; so both have two buffers, used in turn.
//
// In place: a workgroup reads its own words of the state before it writes them and touches no others, so
// state slot and next slot may be the same (one read_write binding); validatePlan has refused plans in which
// another segment uses a slot that is written. A slot has two conv histories, of which one is read and the
// other written (`pass.ts` takes turns), because value heads read their key head's words without an order.
// A window stores neither; it logs what gdn_keep.wgsl needs.
#include pass.wgsl
#include gdn_common
@group(0) @binding(2) var<storage, read> qkv: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> z: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> betas: array<f32>;
@group(0) @binding(5) var<storage, read> decays: array<f32>;
// Taps [taps, channels], norm weight [value dim], then (rate, bias, 0, 0) of each value head.
@group(0) @binding(6) var<storage, read> weights: array<vec4<f32>>;
@group(0) @binding(7) var<storage, read_write> history: array<vec4<f32>>;
@group(0) @binding(8) var<storage, read_write> state: array<vec4<f32>>;
@group(0) @binding(9) var<storage, read_write> mixed: array<InputQuad>;
@group(0) @binding(10) var<storage, read_write> windowLog: array<vec4<f32>>;

const normWeights = {TAPS}u * channels;
const rates = normWeights + valueQuads;

// Of each row of the block: q, k, v; when the row is done, o stands where v stood.
var<workgroup> block: array<vec4<f32>, {BLOCK_QUADS}>;
var<workgroup> squares: array<f32, {BLOCK_SQUARES}>;
var<workgroup> scales: array<f32, 2 * {BLOCK}>;
// (g, β).
var<workgroup> gates: array<vec2<f32>, {BLOCK}>;
// First the raw q, k and v of the block and of the rows that it looks back to; then [turn, part, column] sums over a part's key rows, twice: Sᵀk, Sᵀq.
var<workgroup> sums: array<vec4<f32>, {SUMS}>;
const readings = 2u * {THREADS}u;

// What a workgroup works on: rows [first, first + rows) of the pass.
struct Work {
  head: u32,
  first: u32,
  rows: u32,
  // First quads of the history that is read, of the log, and of the history that is written.
  history: u32,
  log: u32,
  next: u32,
  isWindow: bool,
}

fn qkvAt(row: u32, channel: u32) -> vec4<f32> {
  let at = row * param(0u) + channel;
  var value = qkv[at];
#repeat i SLICES
#if i > 0
  value += qkv[at + {i}u * param(7u) / 4u];
#end
#end
  return value;
}

fn zAt(at: u32) -> vec4<f32> {
  var value = z[at];
#repeat i SLICES
#if i > 0
  value += z[at + {i}u * param(7u) / 4u];
#end
#end
  return value;
}

// (g, β) of a row.
fn gatesAt(row: u32, head: u32) -> vec2<f32> {
  var decay = decays[row * param(3u) + head];
  var beta = betas[row * param(2u) + head];
#repeat i SLICES
#if i > 0
  decay += decays[row * param(3u) + head + {i}u * param(7u)];
  beta += betas[row * param(2u) + head + {i}u * param(7u)];
#end
#end
  let rate = weights[rates + head];
  let x = decay + rate.y;
  let softplus = max(x, 0.0) + log(1.0 + exp(-abs(x)));
  return vec2<f32>(exp(rate.x * softplus), sigmoid(beta));
}

// Raw row `place` of (old history, the segment's rows).
fn rawAt(work: Work, place: u32, channel: u32) -> vec4<f32> {
  if (place >= depth) { return qkvAt(work.first + place - depth, channel); }
  return history[work.history + place * channels + channel];
}

fn squared(v: vec4<f32>) -> f32 { return fma(v.w, v.w, fma(v.z, v.z, fma(v.y, v.y, v.x * v.x))); }

fn siluOf(v: vec4<f32>) -> vec4<f32> { return v / (vec4<f32>(1.0) + exp(-v)); }

// The only place that knows how out_proj wants its input.
fn storeMixed(row: u32, column: u32, value: vec4<f32>) {
  mixed[inputAt(row, column, param(4u)) / 4u] = asInputs(value);
}

fn convolveBlock(work: Work, begin: u32, count: u32, thread: u32) {
  for (var index = thread; index < (depth + count) * items; index += {THREADS}u) {
    sums[index] = rawAt(work, begin + index / items, channelOf(index % items, work.head));
  }
  for (var local = {THREADS}u - 1u - thread; local < count; local += {THREADS}u) {
    gates[local] = gatesAt(work.first + begin + local, work.head);
  }
  workgroupBarrier();
  for (var index = thread; index < count * items; index += {THREADS}u) {
    let local = index / items;
    let item = index % items;
    let channel = channelOf(item, work.head);
    var sum = vec4<f32>(0.0);
    for (var tap = 0u; tap < {TAPS}u; tap++) {
      sum = fma(weights[tap * channels + channel], sums[index + tap * items], sum);
    }
    if (work.isWindow && owns(item, work.head)) {
      let logRow = work.log + (begin + local) * logQuads;
      windowLog[logRow + logRaw + channel] = sums[index + depth * items];
    }
    let c = siluOf(sum);
    block[index] = c;
    if (item < 2u * keyQuads) { squares[local * 2u * keyQuads + item] = squared(c); }
  }
}

fn scaleKeys(count: u32, thread: u32) {
  // q of a row, then its k.
  for (var index = thread; index < 2u * count; index += {THREADS}u) {
    var sum = 0.0;
    for (var i = 0u; i < keyQuads; i++) { sum += squares[index * keyQuads + i]; }
    let scale = 1.0 / sqrt(sum + 1e-6);
    scales[index] = select(scale, scale / sqrt(f32({KEY_DIM}u)), index % 2u == 0u);
  }
  workgroupBarrier();
  for (var index = thread; index < count * 2u * keyQuads; index += {THREADS}u) {
    let at = index / (2u * keyQuads) * items + index % (2u * keyQuads);
    block[at] *= scales[index / keyQuads];
  }
}

// The keys and decays of a window; its raw rows and δ are logged where they are made.
fn logBlock(work: Work, begin: u32, count: u32, thread: u32) {
  for (var index = thread; index < count * items; index += {THREADS}u) {
    let local = begin + index / items;
    let item = index % items;
    if (!owns(item, work.head)) { continue; }
    let logRow = work.log + local * logQuads;
    let channel = channelOf(item, work.head);
    if (item >= keyQuads && item < 2u * keyQuads) {
      windowLog[logRow + logKeys + channel - {KEY_HEADS}u * keyQuads] = block[index];
    }
    if (item == 2u * keyQuads) {
      windowLog[logRow + work.head] = vec4<f32>(gates[local - begin].x, 0.0, 0.0, 0.0);
    }
  }
}

// o of a row of the block, in one thread of each column.
fn finishRow(local: u32, column: u32) {
  let at = readings + local % 2u * {THREADS}u + column;
  var o = sums[at];
  for (var i = 1u; i < {PARTS}u; i++) { o += sums[at + i * valueQuads]; }
  block[local * items + 2u * keyQuads + column] = o;
  squares[local * valueQuads + column] = squared(o);
}

fn writeBlock(work: Work, begin: u32, count: u32, thread: u32) {
  for (var local = thread; local < count; local += {THREADS}u) {
    var sum = 0.0;
    for (var i = 0u; i < valueQuads; i++) { sum += squares[local * valueQuads + i]; }
    scales[local] = 1.0 / sqrt(sum / f32({VALUE_DIM}u) + paramFloat(5u));
  }
  workgroupBarrier();
  for (var index = thread; index < count * valueQuads; index += {THREADS}u) {
    let local = index / valueQuads;
    let column = index % valueQuads;
    let row = work.first + begin + local;
    let o = block[local * items + 2u * keyQuads + column] * scales[local];
    let gate = siluOf(zAt(row * param(1u) + work.head * valueQuads + column));
    storeMixed(row, work.head * {VALUE_DIM}u + 4u * column, o * weights[normWeights + column] * gate);
  }
}

fn publishHistory(work: Work, thread: u32) {
  for (var index = thread; index < depth * items; index += {THREADS}u) {
    let item = index % items;
    if (!owns(item, work.head)) { continue; }
    let channel = channelOf(item, work.head);
    let place = index / items;
    history[work.next + place * channels + channel] =
      rawAt(work, work.rows + place, channel);
  }
}

// params: strides of 0 qkv and 1 z in quads, of 2 b and 3 a in floats, of 4 out in quads; 5 eps; 6 slots
// from the next slot to the one that is written (0, unless gdn_copy.wgsl follows); 7 floats from slice to
// slice
@compute @workgroup_size({THREADS})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let head = group.x;
  let segment = group.y;
  let slot = segmentWord(segment, 2u);
  var work: Work;
  work.head = head;
  work.first = segmentWord(segment, 0u);
  work.rows = segmentWord(segment, 1u);
  work.history = segmentWord(segment, 5u) * depth * channels;
  work.log = logOf(slot);
  work.next = segmentWord(segment, 6u) * depth * channels;
  work.isWindow = segmentWord(segment, 7u) != 0u;
  let column = thread % valueQuads;
  let part = thread / valueQuads;
  let within = (head * {KEY_DIM}u + part * {PER_PART}u) * valueQuads + column;
  let source = slot * stateQuads + within;
  let deltaLog = work.log + logDeltas + head * valueQuads + column;
#repeat j QUADS
  var s{j}x = state[source + (4u * {j}u) * valueQuads];
  var s{j}y = state[source + (4u * {j}u + 1u) * valueQuads];
  var s{j}z = state[source + (4u * {j}u + 2u) * valueQuads];
  var s{j}w = state[source + (4u * {j}u + 3u) * valueQuads];
#end
  for (var begin = 0u; begin < work.rows; begin += {BLOCK}u) {
    let count = min({BLOCK}u, work.rows - begin);
    convolveBlock(work, begin, count, thread);
    workgroupBarrier();
    scaleKeys(count, thread);
    workgroupBarrier();
    if (work.isWindow) { logBlock(work, begin, count, thread); }
    for (var local = 0u; local < count; local++) {
      let turn = local % 2u * {THREADS}u;
      let query = local * items + part * {QUADS}u;
      let g = gates[local].x;
      var prediction = vec4<f32>(0.0);
#repeat j QUADS
      let k{j} = block[query + keyQuads + {j}u];
      s{j}x *= g;
      prediction = fma(s{j}x, vec4<f32>(k{j}.x), prediction);
      s{j}y *= g;
      prediction = fma(s{j}y, vec4<f32>(k{j}.y), prediction);
      s{j}z *= g;
      prediction = fma(s{j}z, vec4<f32>(k{j}.z), prediction);
      s{j}w *= g;
      prediction = fma(s{j}w, vec4<f32>(k{j}.w), prediction);
#end
      sums[turn + thread] = prediction;
      workgroupBarrier();
      var predicted = sums[turn + column];
      for (var i = 1u; i < {PARTS}u; i++) { predicted += sums[turn + i * valueQuads + column]; }
      let delta = gates[local].y * (block[local * items + 2u * keyQuads + column] - predicted);
      if (work.isWindow && part == 0u) { windowLog[deltaLog + (begin + local) * logQuads] = delta; }
      if (local > 0u && part == {PARTS}u - 1u) { finishRow(local - 1u, column); }
      var reading = vec4<f32>(0.0);
#repeat j QUADS
      let q{j} = block[query + {j}u];
      s{j}x = fma(vec4<f32>(k{j}.x), delta, s{j}x);
      reading = fma(s{j}x, vec4<f32>(q{j}.x), reading);
      s{j}y = fma(vec4<f32>(k{j}.y), delta, s{j}y);
      reading = fma(s{j}y, vec4<f32>(q{j}.y), reading);
      s{j}z = fma(vec4<f32>(k{j}.z), delta, s{j}z);
      reading = fma(s{j}z, vec4<f32>(q{j}.z), reading);
      s{j}w = fma(vec4<f32>(k{j}.w), delta, s{j}w);
      reading = fma(s{j}w, vec4<f32>(q{j}.w), reading);
#end
      sums[readings + turn + thread] = reading;
    }
    workgroupBarrier();
    if (part == {PARTS}u - 1u) { finishRow(count - 1u, column); }
    workgroupBarrier();
    writeBlock(work, begin, count, thread);
    // The next block takes the place of this one.
    workgroupBarrier();
  }
  if (work.isWindow) { return; }
  let next = (segmentWord(segment, 3u) + param(6u)) * stateQuads + within;
#repeat j QUADS
  state[next + (4u * {j}u) * valueQuads] = s{j}x;
  state[next + (4u * {j}u + 1u) * valueQuads] = s{j}y;
  state[next + (4u * {j}u + 2u) * valueQuads] = s{j}z;
  state[next + (4u * {j}u + 3u) * valueQuads] = s{j}w;
#end
  publishHistory(work, thread);
}
