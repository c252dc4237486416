// GDN: a Gated DeltaNet layer between its projections, one workgroup a (segment, value head). For each row
// in order:
//   c = silu(Σ_j w[j] · m[t − taps + 1 + j]), taps in order by fma, m the raw q, k and v of the row; q and k
//   divided by their length (q also by √dk); g = exp(rate · softplus(a + bias)), β = sigmoid(b);
//   p = Sᵀk; S ← g·S; δ = β·fma(−g, p, v); S ← S + k·δᵀ; o = Sᵀq; y = RMSNorm(o) · (weight · silu(z)).
// Sums over the key dim: of one of {PARTS} parts, its even rows ascending by fma, plus its odd rows; then the
// parts ascending. Sums of squares: four neighbours of q and k, two of o, by fma; {LANES} sums of every
// {LANES}th of these; then these; all ascending. q, k, v, z, a and b come as {SLICES} sums over parts of their
// projection's input, which are added in order. So no sum depends on how many rows there are, or which.
//
// A thread holds {PER_PART} key rows × 2 columns of the state in registers from the first row to the last.
// Rows go by blocks of {BLOCK}, whose q, k and v are made by all threads and lie in workgroup memory. A
// row takes one barrier: every thread adds up the parts' predictions of its own columns, and the parts of
// o are added after the next row's barrier; so both have two buffers, used in turn.
//
// A head's rows wait for each other, so this is bound by latency. A block's rows are loaded while the block
// before it is scanned (Ahead), and what the first block needs before any of it is used. Sums of squares are
// cut so that all threads add. S is decayed after the prediction, while the parts' sums come.
//
// In place: a workgroup reads its own words of the state before it writes them and touches no others, so
// state slot and next slot may be the same (one read_write binding); validatePlan has refused plans in which
// another segment uses a slot that is written. A slot has two conv histories, of which one is read and the
// other written (`pass.ts` takes turns), because value heads read their key head's words without an order.
// A window stores neither; it logs what gdn_keep.wgsl needs.
//
// TREE is for passes with trees: one workgroup a (scan, value head). A tree is scanned once for each of its leaves, each
// time from the slot's state along the path to the leaf, as a chain of just those rows would be. Rows that are on
// several paths come out alike each time, and the first path has them.
#include pass.wgsl
#include gdn_common
@group(0) @binding(2) var<storage, read> qkv: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> z: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> betas: array<f32>;
@group(0) @binding(5) var<storage, read> decays: array<f32>;
// Taps [taps, channels], norm weight [value dim], then (rate, bias, 0, 0) of each value head.
@group(0) @binding(6) var<storage, read> weights: array<vec4<f32>>;
@group(0) @binding(7) var<storage, read_write> history: array<vec4<f32>>;
@group(0) @binding(8) var<storage, read_write> state: array<vec2<f32>>;
@group(0) @binding(9) var<storage, read_write> mixed: array<InputQuad>;
@group(0) @binding(10) var<storage, read_write> windowLog: array<vec2<f32>>;

const valuePairs = 2u * valueQuads;
const statePairs = 2u * stateQuads;
const tailQuads = depth * items;
const normWeights = {TAPS}u * channels;
const rates = normWeights + valueQuads;

// [row, item] of the tail, which is the raw rows that the block looks back to, and of the block: first its raw
// rows, and in their place its q, k and v.
var<workgroup> staged: array<vec4<f32>, tailQuads + {BLOCK}u * items>;
// [turn, part, pair of columns]: sums over a part's key rows.
var<workgroup> predictions: array<vec2<f32>, 2 * {THREADS}>;
var<workgroup> readings: array<vec2<f32>, 2 * {THREADS}>;
// [row, pair]: o.
var<workgroup> outputs: array<vec2<f32>, {BLOCK}u * valuePairs>;
// [row, q or k, quad], then [row, pair] of o; and their sums.
var<workgroup> squares: array<f32, {BLOCK}u * max(2u * keyQuads, valuePairs)>;
var<workgroup> squareSums: array<f32, 2 * {BLOCK} * {LANES}>;
// (g, β).
var<workgroup> gates: array<vec2<f32>, {BLOCK}>;

// What a workgroup works on: rows [first, first + rows) of the pass.
struct Work {
  head: u32,
  first: u32,
  rows: u32,
  slot: u32,
  nextSlot: u32,
  // First quads of the history that is read, and of the one that is written.
  history: u32,
  nextHistory: u32,
  isWindow: bool,
#if TREE
  // The first rows that another scan gives, and where the others stand in the segment unless it is no tree.
  known: u32,
  isTree: bool,
  path: vec2<u32>,
#end
}

// Whether what row `index` of the scan makes is this scan's to store.
fn gives(work: Work, index: u32) -> bool {
#if TREE
  return index >= work.known;
#else
  return true;
#end
}

// Where row `index` of the scan stands in its segment.
fn localOf(work: Work, index: u32) -> u32 {
#if TREE
  if (work.isTree) { return pathRow(work.path, index); }
#end
  return index;
}

// A thread makes one item of {EACH} neighbouring rows of every block; the last threads may have none.
fn itemOf(thread: u32) -> u32 { return thread % items; }
fn rowOf(thread: u32) -> u32 { return thread / items * {EACH}u; }

// Of the item that a thread makes.
struct Taps {
#repeat t TAPS
  tap{t}: vec4<f32>,
#end
}

// What a thread loads of a block before it is needed. Slices are not added yet, which would wait for them.
struct Ahead {
#repeat s SLICES
#repeat i EACH
  raw{i}_{s}: vec4<f32>,
#end
#repeat i GIVEN
  z{i}_{s}: vec4<f32>,
#end
  decay{s}: f32,
  beta{s}: f32,
#end
}

fn workOf(index: u32, head: u32) -> Work {
  var work: Work;
#if TREE
  let segment = scanWord(index, 0u);
#else
  let segment = index;
#end
  work.head = head;
  work.first = segmentWord(segment, 0u);
  work.rows = segmentWord(segment, 1u);
  work.slot = segmentWord(segment, 2u);
  work.nextSlot = segmentWord(segment, 3u) + param(6u);
  work.history = segmentWord(segment, 5u) * depth * channels;
  work.nextHistory = segmentWord(segment, 6u) * depth * channels;
  work.isWindow = segmentWord(segment, 7u) != 0u;
#if TREE
  work.rows = scanWord(index, 1u);
  work.known = scanWord(index, 2u);
  work.isTree = segmentWord(segment, 7u) == 2u;
  work.path = pathOf(scanWord(index, 3u));
#end
  return work;
}

fn tapsOf(head: u32, thread: u32) -> Taps {
  var taps: Taps;
  let channel = channelOf(itemOf(thread), head);
#repeat t TAPS
  taps.tap{t} = weights[{t}u * channels + channel];
#end
  return taps;
}

// Rows of the block that begins at row `begin`.
fn countOf(work: Work, begin: u32) -> u32 {
  return min({BLOCK}u, max(work.rows, begin) - begin);
}

// Of the block that begins at row `begin`; zeros past the last row.
fn loadAhead(work: Work, begin: u32, thread: u32) -> Ahead {
  var ahead: Ahead;
  let count = countOf(work, begin);
  let channel = channelOf(itemOf(thread), work.head);
#repeat i EACH
  if (rowOf(thread) + {i}u < count) {
    let row = work.first + localOf(work, begin + rowOf(thread) + {i}u);
    let at = row * param(0u) + channel;
#repeat s SLICES
    ahead.raw{i}_{s} = qkv[at + {s}u * (param(7u) / 4u)];
#end
  }
#end
  if (thread < count) {
    let row = work.first + localOf(work, begin + thread);
#repeat s SLICES
    ahead.decay{s} = decays[row * param(3u) + work.head + {s}u * param(7u)];
    ahead.beta{s} = betas[row * param(2u) + work.head + {s}u * param(7u)];
#end
  }
#repeat i GIVEN
  if (thread + {i*THREADS}u < count * valueQuads) {
    let index = thread + {i*THREADS}u;
    let row = work.first + localOf(work, begin + index / valueQuads);
    let at = row * param(1u) + work.head * valueQuads + index % valueQuads;
#repeat s SLICES
    ahead.z{i}_{s} = z[at + {s}u * (param(7u) / 4u)];
#end
  }
#end
  return ahead;
}

// (g, β) of the row whose a and b this thread has.
fn gatesOf(ahead: Ahead, rate: vec2<f32>) -> vec2<f32> {
  var decay = 0.0;
  var beta = 0.0;
#repeat s SLICES
  decay += ahead.decay{s};
  beta += ahead.beta{s};
#end
  let x = decay + rate.y;
  let softplus = max(x, 0.0) + log(1.0 + exp(-abs(x)));
  return vec2<f32>(exp(rate.x * softplus), sigmoid(beta));
}

fn siluOf(v: vec4<f32>) -> vec4<f32> { return v / (vec4<f32>(1.0) + exp(-v)); }

// Begins the sums of `lots` × `each` squares; all threads add, and {LANES} divides `each`.
fn addSquares(lots: u32, each: u32, thread: u32) {
  for (var index = thread; index < lots * {LANES}u; index += {THREADS}u) {
    let first = index / {LANES}u * each + index % {LANES}u;
    var sum = 0.0;
    for (var i = 0u; i < each; i += {LANES}u) { sum += squares[first + i]; }
    squareSums[index] = sum;
  }
}

fn sumOfSquares(lot: u32) -> f32 {
  var sum = 0.0;
#repeat i LANES
  sum += squareSums[lot * {LANES}u + {i}u];
#end
  return sum;
}

// The only place that knows how out_proj wants its input.
fn storeMixed(row: u32, column: u32, value: vec4<f32>) {
  mixed[inputAt(row, column, param(4u)) / 4u] = asInputs(value);
}

// Quad `quad` of the log of row `index` of a window's scan.
fn logQuad(work: Work, index: u32, quad: u32, value: vec4<f32>) {
  if (!gives(work, index)) { return; }
  let at = 2u * (logOf(work.slot) + localOf(work, index) * logQuads + quad);
  windowLog[at] = value.xy;
  windowLog[at + 1u] = value.zw;
}

// q, k, v, g and β of a block, and the tail of the next one.
fn makeBlock(work: Work, ahead: Ahead, taps: Taps, rate: vec2<f32>, begin: u32, thread: u32) {
  let count = countOf(work, begin);
  let item = itemOf(thread);
  let first = rowOf(thread);
  let channel = channelOf(item, work.head);
  let logs = work.isWindow && owns(item, work.head);
  // x0, x1, …: the rows that the thread's first one looks back to, then its own.
#repeat i EACH
  var x{i+DEPTH} = vec4<f32>(0.0);
#repeat s SLICES
  x{i+DEPTH} += ahead.raw{i}_{s};
#end
  if (first + {i}u < count) {
    staged[tailQuads + (first + {i}u) * items + item] = x{i+DEPTH};
    if (logs) { logQuad(work, begin + first + {i}u, logRaw + channel, x{i+DEPTH}); }
  }
#end
  workgroupBarrier();
#repeat i TAIL
  let tail{i} = staged[count * items + min(thread + {i*THREADS}u, tailQuads - 1u)];
#end
#repeat t DEPTH
  let x{t} = staged[(min(first, {BLOCK}u) + {t}u) * items + item];
#end
#repeat i EACH
  var c{i} = vec4<f32>(0.0);
  if (first + {i}u < count) {
#repeat t TAPS
    c{i} = fma(taps.tap{t}, x{i+t}, c{i});
#end
    c{i} = siluOf(c{i});
    if (item < 2u * keyQuads) {
      squares[(first + {i}u) * 2u * keyQuads + item] =
        fma(c{i}.w, c{i}.w, fma(c{i}.z, c{i}.z, fma(c{i}.y, c{i}.y, c{i}.x * c{i}.x)));
    }
  }
#end
  workgroupBarrier();
#repeat i TAIL
  if (thread + {i*THREADS}u < tailQuads) { staged[thread + {i*THREADS}u] = tail{i}; }
#end
  addSquares(2u * count, keyQuads, thread);
  if (thread < count) {
    let gate = gatesOf(ahead, rate);
    gates[thread] = gate;
    if (work.isWindow) {
      logQuad(work, begin + thread, work.head, vec4<f32>(gate.x, 0.0, 0.0, 0.0));
    }
  }
  workgroupBarrier();
#repeat i EACH
  if (first + {i}u < count) {
    if (item < 2u * keyQuads) {
      let scale = 1.0 / sqrt(sumOfSquares(2u * (first + {i}u) + item / keyQuads) + 1e-6);
      c{i} *= select(scale, scale / sqrt(f32({KEY_DIM}u)), item < keyQuads);
    }
    staged[tailQuads + (first + {i}u) * items + item] = c{i};
    if (logs && item >= keyQuads && item < 2u * keyQuads) {
      logQuad(work, begin + first + {i}u, logKeys + channel - {KEY_HEADS}u * keyQuads, c{i});
    }
  }
#end
  workgroupBarrier();
}

// o of a row of the block, in one thread of each pair of columns.
fn finishRow(local: u32, pair: u32) {
  let at = local % 2u * {THREADS}u + pair;
#repeat i PARTS
  let reading{i} = readings[at + {i}u * valuePairs];
#end
  var o = reading0;
#repeat i PARTS
#if i > 0
  o += reading{i};
#end
#end
  outputs[local * valuePairs + pair] = o;
  squares[local * valuePairs + pair] = fma(o.y, o.y, o.x * o.x);
}

// Where quad `index` of the tail stands in a history.
fn historyAt(index: u32, head: u32) -> u32 {
  return index / items * channels + channelOf(index % items, head);
}

// The tail is that of the rows after this pass.
fn publishHistory(work: Work, thread: u32) {
  for (var index = thread; index < tailQuads; index += {THREADS}u) {
    if (!owns(index % items, work.head)) { continue; }
    history[work.nextHistory + historyAt(index, work.head)] = staged[index];
  }
}

// params: strides of 0 qkv and 1 z in quads, of 2 b and 3 a in floats, of 4 out in quads; 5 eps; 6 slots
// from the next slot to the one that is written (0, unless gdn_copy.wgsl follows); 7 floats from slice to
// slice
@compute @workgroup_size({THREADS})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let taps = tapsOf(group.x, thread);
  let rate = weights[rates + group.x].xy;
#repeat i GIVEN
  let weight{i} = weights[normWeights + (thread + {i*THREADS}u) % valueQuads];
#end
  let work = workOf(group.y, group.x);
  var ahead = loadAhead(work, 0u, thread);
#repeat i TAIL
  let index{i} = min(thread + {i*THREADS}u, tailQuads - 1u);
  let tail{i} = history[work.history + historyAt(index{i}, work.head)];
#end
  let pair = thread % valuePairs;
  let part = thread / valuePairs;
  let within = (work.head * {KEY_DIM}u + part * {PER_PART}u) * valuePairs + pair;
  let source = work.slot * statePairs + within;
  let deltaLog = 2u * (logOf(work.slot) + logDeltas + work.head * valueQuads) + pair;
#repeat j QUADS
  var s{j}x = state[source + {j*4}u * valuePairs];
  var s{j}y = state[source + ({j*4}u + 1u) * valuePairs];
  var s{j}z = state[source + ({j*4}u + 2u) * valuePairs];
  var s{j}w = state[source + ({j*4}u + 3u) * valuePairs];
#end
#repeat i TAIL
  if (thread + {i*THREADS}u < tailQuads) { staged[thread + {i*THREADS}u] = tail{i}; }
#end
  for (var begin = 0u; begin < work.rows; begin += {BLOCK}u) {
    let count = countOf(work, begin);
    makeBlock(work, ahead, taps, rate, begin, thread);
#repeat i GIVEN
    var z{i} = vec4<f32>(0.0);
#repeat s SLICES
    z{i} += ahead.z{i}_{s};
#end
#end
    ahead = loadAhead(work, begin + {BLOCK}u, thread);
    for (var local = 0u; local < count; local++) {
      let turn = local % 2u * {THREADS}u;
      let query = tailQuads + local * items + part * {QUADS}u;
      let gate = gates[local];
      let values = staged[tailQuads + local * items + 2u * keyQuads + pair / 2u];
      var even = vec2<f32>(0.0);
      var odd = vec2<f32>(0.0);
#repeat j QUADS
      let k{j} = staged[query + keyQuads + {j}u];
      even = fma(s{j}x, vec2<f32>(k{j}.x), even);
      odd = fma(s{j}y, vec2<f32>(k{j}.y), odd);
      even = fma(s{j}z, vec2<f32>(k{j}.z), even);
      odd = fma(s{j}w, vec2<f32>(k{j}.w), odd);
#end
      predictions[turn + thread] = even + odd;
      workgroupBarrier();
#repeat i PARTS
      let prediction{i} = predictions[turn + {i}u * valuePairs + pair];
#end
#repeat j QUADS
      s{j}x *= gate.x;
      s{j}y *= gate.x;
      s{j}z *= gate.x;
      s{j}w *= gate.x;
#end
      var prediction = prediction0;
#repeat i PARTS
#if i > 0
      prediction += prediction{i};
#end
#end
      let value = select(values.xy, values.zw, pair % 2u == 1u);
      let delta = gate.y * fma(vec2<f32>(-gate.x), prediction, value);
      if (work.isWindow && part == 0u && gives(work, begin + local)) {
        windowLog[deltaLog + 2u * localOf(work, begin + local) * logQuads] = delta;
      }
      even = vec2<f32>(0.0);
      odd = vec2<f32>(0.0);
#repeat j QUADS
      let q{j} = staged[query + {j}u];
      s{j}x = fma(vec2<f32>(k{j}.x), delta, s{j}x);
      even = fma(s{j}x, vec2<f32>(q{j}.x), even);
      s{j}y = fma(vec2<f32>(k{j}.y), delta, s{j}y);
      odd = fma(s{j}y, vec2<f32>(q{j}.y), odd);
      s{j}z = fma(vec2<f32>(k{j}.z), delta, s{j}z);
      even = fma(s{j}z, vec2<f32>(q{j}.z), even);
      s{j}w = fma(vec2<f32>(k{j}.w), delta, s{j}w);
      odd = fma(s{j}w, vec2<f32>(q{j}.w), odd);
#end
      readings[turn + thread] = even + odd;
      if (local > 0u && part == {PARTS}u - 1u) { finishRow(local - 1u, pair); }
    }
    workgroupBarrier();
    if (part == {PARTS}u - 1u) { finishRow(count - 1u, pair); }
    workgroupBarrier();
    addSquares(count, valuePairs, thread);
    workgroupBarrier();
#repeat i GIVEN
    if (thread + {i*THREADS}u < count * valueQuads) {
      let index = thread + {i*THREADS}u;
      let local = index / valueQuads;
      let o = vec4<f32>(outputs[2u * index], outputs[2u * index + 1u]);
      let scale = 1.0 / sqrt(sumOfSquares(local) / f32({VALUE_DIM}u) + paramFloat(5u));
      let column = work.head * {VALUE_DIM}u + 4u * (index % valueQuads);
      let row = work.first + localOf(work, begin + local);
      if (gives(work, begin + local)) { storeMixed(row, column, o * scale * (weight{i} * siluOf(z{i}))); }
    }
#end
  }
  if (work.isWindow) { return; }
  let next = work.nextSlot * statePairs + within;
#repeat j QUADS
  state[next + {j*4}u * valuePairs] = s{j}x;
  state[next + ({j*4}u + 1u) * valuePairs] = s{j}y;
  state[next + ({j*4}u + 2u) * valuePairs] = s{j}z;
  state[next + ({j*4}u + 3u) * valuePairs] = s{j}w;
#end
  publishHistory(work, thread);
}
