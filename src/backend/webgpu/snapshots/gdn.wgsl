// GDN: a Gated DeltaNet layer between its projections, one workgroup a (segment, value head). For each row
// in order:
//   c = silu(Σ_j w[j] · m[t − taps + 1 + j]), taps in order by fma, m the raw q, k and v of the row; q and k
//   divided by their length (q also by √dk); g = exp(rate · softplus(a + bias)), β = sigmoid(b);
//   S ← g·S; δ = β·(v − Sᵀk); S ← S + k·δᵀ; o = Sᵀq; y = RMSNorm(o) · weight · silu(z), norm first.
// Sums over the key dim: rows of one of 8 parts ascending by fma, then the parts ascending. Sums of
// squares (lengths of q and k, the norm): four neighbours by fma, then these ascending. q, k, v, z, a and b
// come as 4 sums over parts of their projection's input, which are added in order.
//
// A thread holds 16 key rows × 4 columns of the state in registers from the first row to the last.
// Rows go by blocks of 8, whose q, k and v are made by all threads and lie in workgroup memory. A
// row takes one barrier: every thread adds up the parts' predictions of its own columns, and the parts of
// o are added after the next row's barrier; so both have two buffers, used in turn.
//
// In place: a workgroup reads its own words of the state before it writes them and touches no others, so
// state slot and next slot may be the same (one read_write binding); validatePlan has refused plans in which
// another segment uses a slot that is written. A slot has two conv histories, of which one is read and the
// other written (`pass.ts` takes turns), because value heads read their key head's words without an order.
// A window stores neither; it logs what gdn_keep.wgsl needs.
// The pass that every kernel works on: what `pass.ts` writes. Words from `passWords[0]`:
// rows, draws, segments, then the offsets (in words) of the arrays below, then how attention and top-k are cut.
enable f16;
@group(0) @binding(0) var<uniform> params: array<vec4<u32>, 4>;
@group(0) @binding(1) var<storage, read> passWords: array<u32>;

fn param(index: u32) -> u32 { return params[index / 4u][index % 4u]; }
fn paramFloat(index: u32) -> f32 { return bitcast<f32>(param(index)); }
fn passRows() -> u32 { return passWords[0]; }
fn passDraws() -> u32 { return passWords[1]; }
fn rowId(row: u32) -> u32 { return passWords[passWords[3] + row]; }
fn rowPosition(row: u32) -> u32 { return passWords[passWords[4] + row]; }
fn rowSegment(row: u32) -> u32 { return passWords[passWords[5] + row]; }
fn drawRow(draw: u32) -> u32 { return passWords[passWords[6] + draw]; }
// Candidates that a draw takes from the device; 0: its whole row is read. Then the most of any draw.
fn drawTop(draw: u32) -> u32 { return passWords[passWords[6] + passDraws() + draw]; }
fn passTop() -> u32 { return passWords[12]; }
// Attention: first row and rows of a block; tiles of keys a workgroup; partial results a (row, head).
fn blockWord(block: u32, word: u32) -> u32 { return passWords[passWords[9] + block * 2u + word]; }
fn attentionSpan() -> u32 { return passWords[10]; }
fn attentionPartials() -> u32 { return passWords[11]; }
// Segment record: first row, rows, state slot, next slot, offset of its page table; the conv history that
// is read and the one that is written; 1 for a window.
fn segmentWord(segment: u32, word: u32) -> u32 { return passWords[passWords[7] + segment * 8u + word]; }
fn pageOf(segment: u32, position: u32) -> u32 {
  return passWords[segmentWord(segment, 4u) + position / 64u];
}
// Angles of a row: cosines, then sines.
fn ropeValue(row: u32, index: u32) -> f32 {
  return bitcast<f32>(passWords[passWords[8] + row * 64u + index]);
}
// What a projection reads, and where column `column` of a row of `stride` floats stands in it: project.wgsl
// and project_tiles.wgsl say why. Four neighbours from a multiple of four on stay together.
alias Input = f16;
alias InputQuad = vec4<f16>;
fn inputAt(row: u32, column: u32, stride: u32) -> u32 {
  return row / 8u * 8u * stride + column / 64u * 512u + row % 8u * 64u + column % 64u;
}
// Beyond f16's range: infinite, so that the row's logits tell. WGSL lets the conversion stop at 65504.
fn asInput(value: f32) -> Input {
  let infinite = bitcast<vec2<f16>>((bitcast<u32>(value) & 0x80000000u) | 0x7c000000u).y;
  return select(f16(value), infinite, abs(value) > 65504.0);
}
fn asInputs(v: vec4<f32>) -> InputQuad {
  return vec4<f16>(asInput(v.x), asInput(v.y), asInput(v.z), asInput(v.w));
}
fn sigmoid(x: f32) -> f32 { return 1.0 / (1.0 + exp(-x)); }

// What the kernels of Gated DeltaNet share. Everything is counted in vectors of four channels ("quads").
const keyQuads = 128u / 4u;
const valueQuads = 128u / 4u;
// Of one row and value head: its query, key and value.
const items = 2u * keyQuads + valueQuads;
const channels = 2u * 16u * keyQuads + 48u * valueQuads;
const stateQuads = 48u * 128u * valueQuads;
// Raw rows that the convolution looks back.
const depth = 4u - 1u;
const headsPerKey = 48u / 16u;
// A row of a window's log: g of each value head, δ, keys after the convolution, raw q, k and v.
const logDeltas = 48u;
const logKeys = logDeltas + 48u * valueQuads;
const logRaw = logKeys + 16u * keyQuads;
const logQuads = logRaw + channels;

// The first log row of a slot.
fn logOf(slot: u32) -> u32 { return slot * 16u * logQuads; }

// Where item `item` of a value head stands among a row's channels.
fn channelOf(item: u32, head: u32) -> u32 {
  let keyHead = head / headsPerKey;
  if (item < keyQuads) { return keyHead * keyQuads + item; }
  if (item < 2u * keyQuads) { return (16u + keyHead) * keyQuads + item - keyQuads; }
  return 2u * 16u * keyQuads + head * valueQuads + item - 2u * keyQuads;
}

// Value heads share their key head's channels; the first of them writes what is written of those.
fn owns(item: u32, head: u32) -> bool { return item >= 2u * keyQuads || head % headsPerKey == 0u; }

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

const normWeights = 4u * channels;
const rates = normWeights + valueQuads;

// Of each row of the block: q, k, v; when the row is done, o stands where v stood.
var<workgroup> block: array<vec4<f32>, 768>;
var<workgroup> squares: array<f32, 512>;
var<workgroup> scales: array<f32, 2 * 8>;
// (g, β).
var<workgroup> gates: array<vec2<f32>, 8>;
// First the raw q, k and v of the block and of the rows that it looks back to; then [turn, part, column] sums over a part's key rows, twice: Sᵀk, Sᵀq.
var<workgroup> sums: array<vec4<f32>, 1056>;
const readings = 2u * 256u;

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
  value += qkv[at + 1u * param(7u) / 4u];
  value += qkv[at + 2u * param(7u) / 4u];
  value += qkv[at + 3u * param(7u) / 4u];
  return value;
}

fn zAt(at: u32) -> vec4<f32> {
  var value = z[at];
  value += z[at + 1u * param(7u) / 4u];
  value += z[at + 2u * param(7u) / 4u];
  value += z[at + 3u * param(7u) / 4u];
  return value;
}

// (g, β) of a row.
fn gatesAt(row: u32, head: u32) -> vec2<f32> {
  var decay = decays[row * param(3u) + head];
  var beta = betas[row * param(2u) + head];
  decay += decays[row * param(3u) + head + 1u * param(7u)];
  beta += betas[row * param(2u) + head + 1u * param(7u)];
  decay += decays[row * param(3u) + head + 2u * param(7u)];
  beta += betas[row * param(2u) + head + 2u * param(7u)];
  decay += decays[row * param(3u) + head + 3u * param(7u)];
  beta += betas[row * param(2u) + head + 3u * param(7u)];
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
  for (var index = thread; index < (depth + count) * items; index += 256u) {
    sums[index] = rawAt(work, begin + index / items, channelOf(index % items, work.head));
  }
  for (var local = 256u - 1u - thread; local < count; local += 256u) {
    gates[local] = gatesAt(work.first + begin + local, work.head);
  }
  workgroupBarrier();
  for (var index = thread; index < count * items; index += 256u) {
    let local = index / items;
    let item = index % items;
    let channel = channelOf(item, work.head);
    var sum = vec4<f32>(0.0);
    for (var tap = 0u; tap < 4u; tap++) {
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
  for (var index = thread; index < 2u * count; index += 256u) {
    var sum = 0.0;
    for (var i = 0u; i < keyQuads; i++) { sum += squares[index * keyQuads + i]; }
    let scale = 1.0 / sqrt(sum + 1e-6);
    scales[index] = select(scale, scale / sqrt(f32(128u)), index % 2u == 0u);
  }
  workgroupBarrier();
  for (var index = thread; index < count * 2u * keyQuads; index += 256u) {
    let at = index / (2u * keyQuads) * items + index % (2u * keyQuads);
    block[at] *= scales[index / keyQuads];
  }
}

// The keys and decays of a window; its raw rows and δ are logged where they are made.
fn logBlock(work: Work, begin: u32, count: u32, thread: u32) {
  for (var index = thread; index < count * items; index += 256u) {
    let local = begin + index / items;
    let item = index % items;
    if (!owns(item, work.head)) { continue; }
    let logRow = work.log + local * logQuads;
    let channel = channelOf(item, work.head);
    if (item >= keyQuads && item < 2u * keyQuads) {
      windowLog[logRow + logKeys + channel - 16u * keyQuads] = block[index];
    }
    if (item == 2u * keyQuads) {
      windowLog[logRow + work.head] = vec4<f32>(gates[local - begin].x, 0.0, 0.0, 0.0);
    }
  }
}

// o of a row of the block, in one thread of each column.
fn finishRow(local: u32, column: u32) {
  let at = readings + local % 2u * 256u + column;
  var o = sums[at];
  for (var i = 1u; i < 8u; i++) { o += sums[at + i * valueQuads]; }
  block[local * items + 2u * keyQuads + column] = o;
  squares[local * valueQuads + column] = squared(o);
}

fn writeBlock(work: Work, begin: u32, count: u32, thread: u32) {
  for (var local = thread; local < count; local += 256u) {
    var sum = 0.0;
    for (var i = 0u; i < valueQuads; i++) { sum += squares[local * valueQuads + i]; }
    scales[local] = 1.0 / sqrt(sum / f32(128u) + paramFloat(5u));
  }
  workgroupBarrier();
  for (var index = thread; index < count * valueQuads; index += 256u) {
    let local = index / valueQuads;
    let column = index % valueQuads;
    let row = work.first + begin + local;
    let o = block[local * items + 2u * keyQuads + column] * scales[local];
    let gate = siluOf(zAt(row * param(1u) + work.head * valueQuads + column));
    storeMixed(row, work.head * 128u + 4u * column, o * weights[normWeights + column] * gate);
  }
}

fn publishHistory(work: Work, thread: u32) {
  for (var index = thread; index < depth * items; index += 256u) {
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
@compute @workgroup_size(256)
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
  let within = (head * 128u + part * 16u) * valueQuads + column;
  let source = slot * stateQuads + within;
  let deltaLog = work.log + logDeltas + head * valueQuads + column;
  var s0x = state[source + (4u * 0u) * valueQuads];
  var s0y = state[source + (4u * 0u + 1u) * valueQuads];
  var s0z = state[source + (4u * 0u + 2u) * valueQuads];
  var s0w = state[source + (4u * 0u + 3u) * valueQuads];
  var s1x = state[source + (4u * 1u) * valueQuads];
  var s1y = state[source + (4u * 1u + 1u) * valueQuads];
  var s1z = state[source + (4u * 1u + 2u) * valueQuads];
  var s1w = state[source + (4u * 1u + 3u) * valueQuads];
  var s2x = state[source + (4u * 2u) * valueQuads];
  var s2y = state[source + (4u * 2u + 1u) * valueQuads];
  var s2z = state[source + (4u * 2u + 2u) * valueQuads];
  var s2w = state[source + (4u * 2u + 3u) * valueQuads];
  var s3x = state[source + (4u * 3u) * valueQuads];
  var s3y = state[source + (4u * 3u + 1u) * valueQuads];
  var s3z = state[source + (4u * 3u + 2u) * valueQuads];
  var s3w = state[source + (4u * 3u + 3u) * valueQuads];
  for (var begin = 0u; begin < work.rows; begin += 8u) {
    let count = min(8u, work.rows - begin);
    convolveBlock(work, begin, count, thread);
    workgroupBarrier();
    scaleKeys(count, thread);
    workgroupBarrier();
    if (work.isWindow) { logBlock(work, begin, count, thread); }
    for (var local = 0u; local < count; local++) {
      let turn = local % 2u * 256u;
      let query = local * items + part * 4u;
      let g = gates[local].x;
      var prediction = vec4<f32>(0.0);
      let k0 = block[query + keyQuads + 0u];
      s0x *= g;
      prediction = fma(s0x, vec4<f32>(k0.x), prediction);
      s0y *= g;
      prediction = fma(s0y, vec4<f32>(k0.y), prediction);
      s0z *= g;
      prediction = fma(s0z, vec4<f32>(k0.z), prediction);
      s0w *= g;
      prediction = fma(s0w, vec4<f32>(k0.w), prediction);
      let k1 = block[query + keyQuads + 1u];
      s1x *= g;
      prediction = fma(s1x, vec4<f32>(k1.x), prediction);
      s1y *= g;
      prediction = fma(s1y, vec4<f32>(k1.y), prediction);
      s1z *= g;
      prediction = fma(s1z, vec4<f32>(k1.z), prediction);
      s1w *= g;
      prediction = fma(s1w, vec4<f32>(k1.w), prediction);
      let k2 = block[query + keyQuads + 2u];
      s2x *= g;
      prediction = fma(s2x, vec4<f32>(k2.x), prediction);
      s2y *= g;
      prediction = fma(s2y, vec4<f32>(k2.y), prediction);
      s2z *= g;
      prediction = fma(s2z, vec4<f32>(k2.z), prediction);
      s2w *= g;
      prediction = fma(s2w, vec4<f32>(k2.w), prediction);
      let k3 = block[query + keyQuads + 3u];
      s3x *= g;
      prediction = fma(s3x, vec4<f32>(k3.x), prediction);
      s3y *= g;
      prediction = fma(s3y, vec4<f32>(k3.y), prediction);
      s3z *= g;
      prediction = fma(s3z, vec4<f32>(k3.z), prediction);
      s3w *= g;
      prediction = fma(s3w, vec4<f32>(k3.w), prediction);
      sums[turn + thread] = prediction;
      workgroupBarrier();
      var predicted = sums[turn + column];
      for (var i = 1u; i < 8u; i++) { predicted += sums[turn + i * valueQuads + column]; }
      let delta = gates[local].y * (block[local * items + 2u * keyQuads + column] - predicted);
      if (work.isWindow && part == 0u) { windowLog[deltaLog + (begin + local) * logQuads] = delta; }
      if (local > 0u && part == 8u - 1u) { finishRow(local - 1u, column); }
      var reading = vec4<f32>(0.0);
      let q0 = block[query + 0u];
      s0x = fma(vec4<f32>(k0.x), delta, s0x);
      reading = fma(s0x, vec4<f32>(q0.x), reading);
      s0y = fma(vec4<f32>(k0.y), delta, s0y);
      reading = fma(s0y, vec4<f32>(q0.y), reading);
      s0z = fma(vec4<f32>(k0.z), delta, s0z);
      reading = fma(s0z, vec4<f32>(q0.z), reading);
      s0w = fma(vec4<f32>(k0.w), delta, s0w);
      reading = fma(s0w, vec4<f32>(q0.w), reading);
      let q1 = block[query + 1u];
      s1x = fma(vec4<f32>(k1.x), delta, s1x);
      reading = fma(s1x, vec4<f32>(q1.x), reading);
      s1y = fma(vec4<f32>(k1.y), delta, s1y);
      reading = fma(s1y, vec4<f32>(q1.y), reading);
      s1z = fma(vec4<f32>(k1.z), delta, s1z);
      reading = fma(s1z, vec4<f32>(q1.z), reading);
      s1w = fma(vec4<f32>(k1.w), delta, s1w);
      reading = fma(s1w, vec4<f32>(q1.w), reading);
      let q2 = block[query + 2u];
      s2x = fma(vec4<f32>(k2.x), delta, s2x);
      reading = fma(s2x, vec4<f32>(q2.x), reading);
      s2y = fma(vec4<f32>(k2.y), delta, s2y);
      reading = fma(s2y, vec4<f32>(q2.y), reading);
      s2z = fma(vec4<f32>(k2.z), delta, s2z);
      reading = fma(s2z, vec4<f32>(q2.z), reading);
      s2w = fma(vec4<f32>(k2.w), delta, s2w);
      reading = fma(s2w, vec4<f32>(q2.w), reading);
      let q3 = block[query + 3u];
      s3x = fma(vec4<f32>(k3.x), delta, s3x);
      reading = fma(s3x, vec4<f32>(q3.x), reading);
      s3y = fma(vec4<f32>(k3.y), delta, s3y);
      reading = fma(s3y, vec4<f32>(q3.y), reading);
      s3z = fma(vec4<f32>(k3.z), delta, s3z);
      reading = fma(s3z, vec4<f32>(q3.z), reading);
      s3w = fma(vec4<f32>(k3.w), delta, s3w);
      reading = fma(s3w, vec4<f32>(q3.w), reading);
      sums[readings + turn + thread] = reading;
    }
    workgroupBarrier();
    if (part == 8u - 1u) { finishRow(count - 1u, column); }
    workgroupBarrier();
    writeBlock(work, begin, count, thread);
    // The next block takes the place of this one.
    workgroupBarrier();
  }
  if (work.isWindow) { return; }
  let next = (segmentWord(segment, 3u) + param(6u)) * stateQuads + within;
  state[next + (4u * 0u) * valueQuads] = s0x;
  state[next + (4u * 0u + 1u) * valueQuads] = s0y;
  state[next + (4u * 0u + 2u) * valueQuads] = s0z;
  state[next + (4u * 0u + 3u) * valueQuads] = s0w;
  state[next + (4u * 1u) * valueQuads] = s1x;
  state[next + (4u * 1u + 1u) * valueQuads] = s1y;
  state[next + (4u * 1u + 2u) * valueQuads] = s1z;
  state[next + (4u * 1u + 3u) * valueQuads] = s1w;
  state[next + (4u * 2u) * valueQuads] = s2x;
  state[next + (4u * 2u + 1u) * valueQuads] = s2y;
  state[next + (4u * 2u + 2u) * valueQuads] = s2z;
  state[next + (4u * 2u + 3u) * valueQuads] = s2w;
  state[next + (4u * 3u) * valueQuads] = s3x;
  state[next + (4u * 3u + 1u) * valueQuads] = s3y;
  state[next + (4u * 3u + 2u) * valueQuads] = s3z;
  state[next + (4u * 3u + 3u) * valueQuads] = s3w;
  publishHistory(work, thread);
}
