// GDN: a Gated DeltaNet layer between its projections, one workgroup a (segment, value head). For each row
// in order:
//   c = silu(Σ_j w[j] · m[t − taps + 1 + j]), taps in order by fma, m the raw q, k and v of the row; q and k
//   divided by their length (q also by √dk); g = exp(rate · softplus(a + bias)), β = sigmoid(b);
//   p = Sᵀk; S ← g·S; δ = β·fma(−g, p, v); S ← S + k·δᵀ; o = Sᵀq; y = RMSNorm(o) · (weight · silu(z)).
// Sums over the key dim: of one of 4 parts, its even rows ascending by fma, plus its odd rows; then the
// parts ascending. Sums of squares: four neighbours of q and k, two of o, by fma; 8 sums of every
// 8th of these; then these; all ascending. q, k, v, z, a and b come as 2 sums over parts of their
// projection's input, which are added in order. So no sum depends on how many rows there are, or which.
//
// A thread holds 32 key rows × 2 columns of the state in registers from the first row to the last.
// Rows go by blocks of 8, whose q, k and v are made by all threads and lie in workgroup memory. A
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
// Segment record: first row (of a keep's: the place of the window's first), rows, state slot, next slot, offset
// of its page table; the conv history that is read and the one that is written; 1 for a window, 2 for a tree.
fn segmentWord(segment: u32, word: u32) -> u32 { return passWords[passWords[7] + segment * 8u + word]; }
fn pageOf(segment: u32, position: u32) -> u32 {
  return passWords[segmentWord(segment, 4u) + position / 64u];
}
// Where a row's keys, values and features lie: at its position, unless its segment is a tree.
fn rowPlace(row: u32) -> u32 { return passWords[passWords[13] + row]; }
// The rows of a segment from its root to one of them, four bits each: of each row of a tree, or of a keep's windows.
fn pathOf(index: u32) -> vec2<u32> {
  let at = passWords[14] + 2u * index;
  return vec2<u32>(passWords[at], passWords[at + 1u]);
}
fn pathRow(path: vec2<u32>, depth: u32) -> u32 {
  return (select(path.x, path.y, depth > 7u) >> (depth % 8u * 4u)) & 15u;
}
// Of a pass with trees: a segment, rows, the first of them that another scan gives, the leaf whose path they are.
fn scanWord(scan: u32, word: u32) -> u32 { return passWords[passWords[15] + scan * 4u + word]; }
// Features lie in rings of `ring` places, one a slot.
fn featureRow(slot: u32, place: u32, ring: u32) -> u32 { return slot * ring + place % ring; }
// Angles of a row: cosines, then sines.
fn ropeValue(row: u32, index: u32) -> f32 {
  return bitcast<f32>(passWords[passWords[8] + row * 64u + index]);
}
// What a projection reads, and where column `column` of a row of `stride` floats stands in it: project.wgsl
// and tiles_common.wgsl say why. Four neighbours from a multiple of four on stay together.
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
@group(0) @binding(8) var<storage, read_write> state: array<vec2<f32>>;
@group(0) @binding(9) var<storage, read_write> mixed: array<InputQuad>;
@group(0) @binding(10) var<storage, read_write> windowLog: array<vec2<f32>>;

const valuePairs = 2u * valueQuads;
const statePairs = 2u * stateQuads;
const tailQuads = depth * items;
const normWeights = 4u * channels;
const rates = normWeights + valueQuads;

// [row, item] of the tail, which is the raw rows that the block looks back to, and of the block: first its raw
// rows, and in their place its q, k and v.
var<workgroup> staged: array<vec4<f32>, tailQuads + 8u * items>;
// [turn, part, pair of columns]: sums over a part's key rows.
var<workgroup> predictions: array<vec2<f32>, 2 * 256>;
var<workgroup> readings: array<vec2<f32>, 2 * 256>;
// [row, pair]: o.
var<workgroup> outputs: array<vec2<f32>, 8u * valuePairs>;
// [row, q or k, quad], then [row, pair] of o; and their sums.
var<workgroup> squares: array<f32, 8u * max(2u * keyQuads, valuePairs)>;
var<workgroup> squareSums: array<f32, 2 * 8 * 8>;
// (g, β).
var<workgroup> gates: array<vec2<f32>, 8>;

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
  // The first rows that another scan gives, and where the others stand in the segment unless it is no tree.
  known: u32,
  isTree: bool,
  path: vec2<u32>,
}

// Whether what row `index` of the scan makes is this scan's to store.
fn gives(work: Work, index: u32) -> bool {
  return index >= work.known;
}

// Where row `index` of the scan stands in its segment.
fn localOf(work: Work, index: u32) -> u32 {
  if (work.isTree) { return pathRow(work.path, index); }
  return index;
}

// A thread makes one item of 4 neighbouring rows of every block; the last threads may have none.
fn itemOf(thread: u32) -> u32 { return thread % items; }
fn rowOf(thread: u32) -> u32 { return thread / items * 4u; }

// Of the item that a thread makes.
struct Taps {
  tap0: vec4<f32>,
  tap1: vec4<f32>,
  tap2: vec4<f32>,
  tap3: vec4<f32>,
}

// What a thread loads of a block before it is needed. Slices are not added yet, which would wait for them.
struct Ahead {
  raw0_0: vec4<f32>,
  raw1_0: vec4<f32>,
  raw2_0: vec4<f32>,
  raw3_0: vec4<f32>,
  z0_0: vec4<f32>,
  decay0: f32,
  beta0: f32,
  raw0_1: vec4<f32>,
  raw1_1: vec4<f32>,
  raw2_1: vec4<f32>,
  raw3_1: vec4<f32>,
  z0_1: vec4<f32>,
  decay1: f32,
  beta1: f32,
}

fn workOf(index: u32, head: u32) -> Work {
  var work: Work;
  let segment = scanWord(index, 0u);
  work.head = head;
  work.first = segmentWord(segment, 0u);
  work.rows = segmentWord(segment, 1u);
  work.slot = segmentWord(segment, 2u);
  work.nextSlot = segmentWord(segment, 3u) + param(6u);
  work.history = segmentWord(segment, 5u) * depth * channels;
  work.nextHistory = segmentWord(segment, 6u) * depth * channels;
  work.isWindow = segmentWord(segment, 7u) != 0u;
  work.rows = scanWord(index, 1u);
  work.known = scanWord(index, 2u);
  work.isTree = segmentWord(segment, 7u) == 2u;
  work.path = pathOf(scanWord(index, 3u));
  return work;
}

fn tapsOf(head: u32, thread: u32) -> Taps {
  var taps: Taps;
  let channel = channelOf(itemOf(thread), head);
  taps.tap0 = weights[0u * channels + channel];
  taps.tap1 = weights[1u * channels + channel];
  taps.tap2 = weights[2u * channels + channel];
  taps.tap3 = weights[3u * channels + channel];
  return taps;
}

// Rows of the block that begins at row `begin`.
fn countOf(work: Work, begin: u32) -> u32 {
  return min(8u, max(work.rows, begin) - begin);
}

// Of the block that begins at row `begin`; zeros past the last row.
fn loadAhead(work: Work, begin: u32, thread: u32) -> Ahead {
  var ahead: Ahead;
  let count = countOf(work, begin);
  let channel = channelOf(itemOf(thread), work.head);
  if (rowOf(thread) + 0u < count) {
    let row = work.first + localOf(work, begin + rowOf(thread) + 0u);
    let at = row * param(0u) + channel;
    ahead.raw0_0 = qkv[at + 0u * (param(7u) / 4u)];
    ahead.raw0_1 = qkv[at + 1u * (param(7u) / 4u)];
  }
  if (rowOf(thread) + 1u < count) {
    let row = work.first + localOf(work, begin + rowOf(thread) + 1u);
    let at = row * param(0u) + channel;
    ahead.raw1_0 = qkv[at + 0u * (param(7u) / 4u)];
    ahead.raw1_1 = qkv[at + 1u * (param(7u) / 4u)];
  }
  if (rowOf(thread) + 2u < count) {
    let row = work.first + localOf(work, begin + rowOf(thread) + 2u);
    let at = row * param(0u) + channel;
    ahead.raw2_0 = qkv[at + 0u * (param(7u) / 4u)];
    ahead.raw2_1 = qkv[at + 1u * (param(7u) / 4u)];
  }
  if (rowOf(thread) + 3u < count) {
    let row = work.first + localOf(work, begin + rowOf(thread) + 3u);
    let at = row * param(0u) + channel;
    ahead.raw3_0 = qkv[at + 0u * (param(7u) / 4u)];
    ahead.raw3_1 = qkv[at + 1u * (param(7u) / 4u)];
  }
  if (thread < count) {
    let row = work.first + localOf(work, begin + thread);
    ahead.decay0 = decays[row * param(3u) + work.head + 0u * param(7u)];
    ahead.beta0 = betas[row * param(2u) + work.head + 0u * param(7u)];
    ahead.decay1 = decays[row * param(3u) + work.head + 1u * param(7u)];
    ahead.beta1 = betas[row * param(2u) + work.head + 1u * param(7u)];
  }
  if (thread + 0u < count * valueQuads) {
    let index = thread + 0u;
    let row = work.first + localOf(work, begin + index / valueQuads);
    let at = row * param(1u) + work.head * valueQuads + index % valueQuads;
    ahead.z0_0 = z[at + 0u * (param(7u) / 4u)];
    ahead.z0_1 = z[at + 1u * (param(7u) / 4u)];
  }
  return ahead;
}

// (g, β) of the row whose a and b this thread has.
fn gatesOf(ahead: Ahead, rate: vec2<f32>) -> vec2<f32> {
  var decay = 0.0;
  var beta = 0.0;
  decay += ahead.decay0;
  beta += ahead.beta0;
  decay += ahead.decay1;
  beta += ahead.beta1;
  let x = decay + rate.y;
  let softplus = max(x, 0.0) + log(1.0 + exp(-abs(x)));
  return vec2<f32>(exp(rate.x * softplus), sigmoid(beta));
}

fn siluOf(v: vec4<f32>) -> vec4<f32> { return v / (vec4<f32>(1.0) + exp(-v)); }

// Begins the sums of `lots` × `each` squares; all threads add, and 8 divides `each`.
fn addSquares(lots: u32, each: u32, thread: u32) {
  for (var index = thread; index < lots * 8u; index += 256u) {
    let first = index / 8u * each + index % 8u;
    var sum = 0.0;
    for (var i = 0u; i < each; i += 8u) { sum += squares[first + i]; }
    squareSums[index] = sum;
  }
}

fn sumOfSquares(lot: u32) -> f32 {
  var sum = 0.0;
  sum += squareSums[lot * 8u + 0u];
  sum += squareSums[lot * 8u + 1u];
  sum += squareSums[lot * 8u + 2u];
  sum += squareSums[lot * 8u + 3u];
  sum += squareSums[lot * 8u + 4u];
  sum += squareSums[lot * 8u + 5u];
  sum += squareSums[lot * 8u + 6u];
  sum += squareSums[lot * 8u + 7u];
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
  var x3 = vec4<f32>(0.0);
  x3 += ahead.raw0_0;
  x3 += ahead.raw0_1;
  if (first + 0u < count) {
    staged[tailQuads + (first + 0u) * items + item] = x3;
    if (logs) { logQuad(work, begin + first + 0u, logRaw + channel, x3); }
  }
  var x4 = vec4<f32>(0.0);
  x4 += ahead.raw1_0;
  x4 += ahead.raw1_1;
  if (first + 1u < count) {
    staged[tailQuads + (first + 1u) * items + item] = x4;
    if (logs) { logQuad(work, begin + first + 1u, logRaw + channel, x4); }
  }
  var x5 = vec4<f32>(0.0);
  x5 += ahead.raw2_0;
  x5 += ahead.raw2_1;
  if (first + 2u < count) {
    staged[tailQuads + (first + 2u) * items + item] = x5;
    if (logs) { logQuad(work, begin + first + 2u, logRaw + channel, x5); }
  }
  var x6 = vec4<f32>(0.0);
  x6 += ahead.raw3_0;
  x6 += ahead.raw3_1;
  if (first + 3u < count) {
    staged[tailQuads + (first + 3u) * items + item] = x6;
    if (logs) { logQuad(work, begin + first + 3u, logRaw + channel, x6); }
  }
  workgroupBarrier();
  let tail0 = staged[count * items + min(thread + 0u, tailQuads - 1u)];
  let tail1 = staged[count * items + min(thread + 256u, tailQuads - 1u)];
  let x0 = staged[(min(first, 8u) + 0u) * items + item];
  let x1 = staged[(min(first, 8u) + 1u) * items + item];
  let x2 = staged[(min(first, 8u) + 2u) * items + item];
  var c0 = vec4<f32>(0.0);
  if (first + 0u < count) {
    c0 = fma(taps.tap0, x0, c0);
    c0 = fma(taps.tap1, x1, c0);
    c0 = fma(taps.tap2, x2, c0);
    c0 = fma(taps.tap3, x3, c0);
    c0 = siluOf(c0);
    if (item < 2u * keyQuads) {
      squares[(first + 0u) * 2u * keyQuads + item] =
        fma(c0.w, c0.w, fma(c0.z, c0.z, fma(c0.y, c0.y, c0.x * c0.x)));
    }
  }
  var c1 = vec4<f32>(0.0);
  if (first + 1u < count) {
    c1 = fma(taps.tap0, x1, c1);
    c1 = fma(taps.tap1, x2, c1);
    c1 = fma(taps.tap2, x3, c1);
    c1 = fma(taps.tap3, x4, c1);
    c1 = siluOf(c1);
    if (item < 2u * keyQuads) {
      squares[(first + 1u) * 2u * keyQuads + item] =
        fma(c1.w, c1.w, fma(c1.z, c1.z, fma(c1.y, c1.y, c1.x * c1.x)));
    }
  }
  var c2 = vec4<f32>(0.0);
  if (first + 2u < count) {
    c2 = fma(taps.tap0, x2, c2);
    c2 = fma(taps.tap1, x3, c2);
    c2 = fma(taps.tap2, x4, c2);
    c2 = fma(taps.tap3, x5, c2);
    c2 = siluOf(c2);
    if (item < 2u * keyQuads) {
      squares[(first + 2u) * 2u * keyQuads + item] =
        fma(c2.w, c2.w, fma(c2.z, c2.z, fma(c2.y, c2.y, c2.x * c2.x)));
    }
  }
  var c3 = vec4<f32>(0.0);
  if (first + 3u < count) {
    c3 = fma(taps.tap0, x3, c3);
    c3 = fma(taps.tap1, x4, c3);
    c3 = fma(taps.tap2, x5, c3);
    c3 = fma(taps.tap3, x6, c3);
    c3 = siluOf(c3);
    if (item < 2u * keyQuads) {
      squares[(first + 3u) * 2u * keyQuads + item] =
        fma(c3.w, c3.w, fma(c3.z, c3.z, fma(c3.y, c3.y, c3.x * c3.x)));
    }
  }
  workgroupBarrier();
  if (thread + 0u < tailQuads) { staged[thread + 0u] = tail0; }
  if (thread + 256u < tailQuads) { staged[thread + 256u] = tail1; }
  addSquares(2u * count, keyQuads, thread);
  if (thread < count) {
    let gate = gatesOf(ahead, rate);
    gates[thread] = gate;
    if (work.isWindow) {
      logQuad(work, begin + thread, work.head, vec4<f32>(gate.x, 0.0, 0.0, 0.0));
    }
  }
  workgroupBarrier();
  if (first + 0u < count) {
    if (item < 2u * keyQuads) {
      let scale = 1.0 / sqrt(sumOfSquares(2u * (first + 0u) + item / keyQuads) + 1e-6);
      c0 *= select(scale, scale / sqrt(f32(128u)), item < keyQuads);
    }
    staged[tailQuads + (first + 0u) * items + item] = c0;
    if (logs && item >= keyQuads && item < 2u * keyQuads) {
      logQuad(work, begin + first + 0u, logKeys + channel - 16u * keyQuads, c0);
    }
  }
  if (first + 1u < count) {
    if (item < 2u * keyQuads) {
      let scale = 1.0 / sqrt(sumOfSquares(2u * (first + 1u) + item / keyQuads) + 1e-6);
      c1 *= select(scale, scale / sqrt(f32(128u)), item < keyQuads);
    }
    staged[tailQuads + (first + 1u) * items + item] = c1;
    if (logs && item >= keyQuads && item < 2u * keyQuads) {
      logQuad(work, begin + first + 1u, logKeys + channel - 16u * keyQuads, c1);
    }
  }
  if (first + 2u < count) {
    if (item < 2u * keyQuads) {
      let scale = 1.0 / sqrt(sumOfSquares(2u * (first + 2u) + item / keyQuads) + 1e-6);
      c2 *= select(scale, scale / sqrt(f32(128u)), item < keyQuads);
    }
    staged[tailQuads + (first + 2u) * items + item] = c2;
    if (logs && item >= keyQuads && item < 2u * keyQuads) {
      logQuad(work, begin + first + 2u, logKeys + channel - 16u * keyQuads, c2);
    }
  }
  if (first + 3u < count) {
    if (item < 2u * keyQuads) {
      let scale = 1.0 / sqrt(sumOfSquares(2u * (first + 3u) + item / keyQuads) + 1e-6);
      c3 *= select(scale, scale / sqrt(f32(128u)), item < keyQuads);
    }
    staged[tailQuads + (first + 3u) * items + item] = c3;
    if (logs && item >= keyQuads && item < 2u * keyQuads) {
      logQuad(work, begin + first + 3u, logKeys + channel - 16u * keyQuads, c3);
    }
  }
  workgroupBarrier();
}

// o of a row of the block, in one thread of each pair of columns.
fn finishRow(local: u32, pair: u32) {
  let at = local % 2u * 256u + pair;
  let reading0 = readings[at + 0u * valuePairs];
  let reading1 = readings[at + 1u * valuePairs];
  let reading2 = readings[at + 2u * valuePairs];
  let reading3 = readings[at + 3u * valuePairs];
  var o = reading0;
  o += reading1;
  o += reading2;
  o += reading3;
  outputs[local * valuePairs + pair] = o;
  squares[local * valuePairs + pair] = fma(o.y, o.y, o.x * o.x);
}

// Where quad `index` of the tail stands in a history.
fn historyAt(index: u32, head: u32) -> u32 {
  return index / items * channels + channelOf(index % items, head);
}

// The tail is that of the rows after this pass.
fn publishHistory(work: Work, thread: u32) {
  for (var index = thread; index < tailQuads; index += 256u) {
    if (!owns(index % items, work.head)) { continue; }
    history[work.nextHistory + historyAt(index, work.head)] = staged[index];
  }
}

// params: strides of 0 qkv and 1 z in quads, of 2 b and 3 a in floats, of 4 out in quads; 5 eps; 6 slots
// from the next slot to the one that is written (0, unless gdn_copy.wgsl follows); 7 floats from slice to
// slice
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let taps = tapsOf(group.x, thread);
  let rate = weights[rates + group.x].xy;
  let weight0 = weights[normWeights + (thread + 0u) % valueQuads];
  let work = workOf(group.y, group.x);
  var ahead = loadAhead(work, 0u, thread);
  let index0 = min(thread + 0u, tailQuads - 1u);
  let tail0 = history[work.history + historyAt(index0, work.head)];
  let index1 = min(thread + 256u, tailQuads - 1u);
  let tail1 = history[work.history + historyAt(index1, work.head)];
  let pair = thread % valuePairs;
  let part = thread / valuePairs;
  let within = (work.head * 128u + part * 32u) * valuePairs + pair;
  let source = work.slot * statePairs + within;
  let deltaLog = 2u * (logOf(work.slot) + logDeltas + work.head * valueQuads) + pair;
  var s0x = state[source + 0u * valuePairs];
  var s0y = state[source + (0u + 1u) * valuePairs];
  var s0z = state[source + (0u + 2u) * valuePairs];
  var s0w = state[source + (0u + 3u) * valuePairs];
  var s1x = state[source + 4u * valuePairs];
  var s1y = state[source + (4u + 1u) * valuePairs];
  var s1z = state[source + (4u + 2u) * valuePairs];
  var s1w = state[source + (4u + 3u) * valuePairs];
  var s2x = state[source + 8u * valuePairs];
  var s2y = state[source + (8u + 1u) * valuePairs];
  var s2z = state[source + (8u + 2u) * valuePairs];
  var s2w = state[source + (8u + 3u) * valuePairs];
  var s3x = state[source + 12u * valuePairs];
  var s3y = state[source + (12u + 1u) * valuePairs];
  var s3z = state[source + (12u + 2u) * valuePairs];
  var s3w = state[source + (12u + 3u) * valuePairs];
  var s4x = state[source + 16u * valuePairs];
  var s4y = state[source + (16u + 1u) * valuePairs];
  var s4z = state[source + (16u + 2u) * valuePairs];
  var s4w = state[source + (16u + 3u) * valuePairs];
  var s5x = state[source + 20u * valuePairs];
  var s5y = state[source + (20u + 1u) * valuePairs];
  var s5z = state[source + (20u + 2u) * valuePairs];
  var s5w = state[source + (20u + 3u) * valuePairs];
  var s6x = state[source + 24u * valuePairs];
  var s6y = state[source + (24u + 1u) * valuePairs];
  var s6z = state[source + (24u + 2u) * valuePairs];
  var s6w = state[source + (24u + 3u) * valuePairs];
  var s7x = state[source + 28u * valuePairs];
  var s7y = state[source + (28u + 1u) * valuePairs];
  var s7z = state[source + (28u + 2u) * valuePairs];
  var s7w = state[source + (28u + 3u) * valuePairs];
  if (thread + 0u < tailQuads) { staged[thread + 0u] = tail0; }
  if (thread + 256u < tailQuads) { staged[thread + 256u] = tail1; }
  for (var begin = 0u; begin < work.rows; begin += 8u) {
    let count = countOf(work, begin);
    makeBlock(work, ahead, taps, rate, begin, thread);
    var z0 = vec4<f32>(0.0);
    z0 += ahead.z0_0;
    z0 += ahead.z0_1;
    ahead = loadAhead(work, begin + 8u, thread);
    for (var local = 0u; local < count; local++) {
      let turn = local % 2u * 256u;
      let query = tailQuads + local * items + part * 8u;
      let gate = gates[local];
      let values = staged[tailQuads + local * items + 2u * keyQuads + pair / 2u];
      var even = vec2<f32>(0.0);
      var odd = vec2<f32>(0.0);
      let k0 = staged[query + keyQuads + 0u];
      even = fma(s0x, vec2<f32>(k0.x), even);
      odd = fma(s0y, vec2<f32>(k0.y), odd);
      even = fma(s0z, vec2<f32>(k0.z), even);
      odd = fma(s0w, vec2<f32>(k0.w), odd);
      let k1 = staged[query + keyQuads + 1u];
      even = fma(s1x, vec2<f32>(k1.x), even);
      odd = fma(s1y, vec2<f32>(k1.y), odd);
      even = fma(s1z, vec2<f32>(k1.z), even);
      odd = fma(s1w, vec2<f32>(k1.w), odd);
      let k2 = staged[query + keyQuads + 2u];
      even = fma(s2x, vec2<f32>(k2.x), even);
      odd = fma(s2y, vec2<f32>(k2.y), odd);
      even = fma(s2z, vec2<f32>(k2.z), even);
      odd = fma(s2w, vec2<f32>(k2.w), odd);
      let k3 = staged[query + keyQuads + 3u];
      even = fma(s3x, vec2<f32>(k3.x), even);
      odd = fma(s3y, vec2<f32>(k3.y), odd);
      even = fma(s3z, vec2<f32>(k3.z), even);
      odd = fma(s3w, vec2<f32>(k3.w), odd);
      let k4 = staged[query + keyQuads + 4u];
      even = fma(s4x, vec2<f32>(k4.x), even);
      odd = fma(s4y, vec2<f32>(k4.y), odd);
      even = fma(s4z, vec2<f32>(k4.z), even);
      odd = fma(s4w, vec2<f32>(k4.w), odd);
      let k5 = staged[query + keyQuads + 5u];
      even = fma(s5x, vec2<f32>(k5.x), even);
      odd = fma(s5y, vec2<f32>(k5.y), odd);
      even = fma(s5z, vec2<f32>(k5.z), even);
      odd = fma(s5w, vec2<f32>(k5.w), odd);
      let k6 = staged[query + keyQuads + 6u];
      even = fma(s6x, vec2<f32>(k6.x), even);
      odd = fma(s6y, vec2<f32>(k6.y), odd);
      even = fma(s6z, vec2<f32>(k6.z), even);
      odd = fma(s6w, vec2<f32>(k6.w), odd);
      let k7 = staged[query + keyQuads + 7u];
      even = fma(s7x, vec2<f32>(k7.x), even);
      odd = fma(s7y, vec2<f32>(k7.y), odd);
      even = fma(s7z, vec2<f32>(k7.z), even);
      odd = fma(s7w, vec2<f32>(k7.w), odd);
      predictions[turn + thread] = even + odd;
      workgroupBarrier();
      let prediction0 = predictions[turn + 0u * valuePairs + pair];
      let prediction1 = predictions[turn + 1u * valuePairs + pair];
      let prediction2 = predictions[turn + 2u * valuePairs + pair];
      let prediction3 = predictions[turn + 3u * valuePairs + pair];
      s0x *= gate.x;
      s0y *= gate.x;
      s0z *= gate.x;
      s0w *= gate.x;
      s1x *= gate.x;
      s1y *= gate.x;
      s1z *= gate.x;
      s1w *= gate.x;
      s2x *= gate.x;
      s2y *= gate.x;
      s2z *= gate.x;
      s2w *= gate.x;
      s3x *= gate.x;
      s3y *= gate.x;
      s3z *= gate.x;
      s3w *= gate.x;
      s4x *= gate.x;
      s4y *= gate.x;
      s4z *= gate.x;
      s4w *= gate.x;
      s5x *= gate.x;
      s5y *= gate.x;
      s5z *= gate.x;
      s5w *= gate.x;
      s6x *= gate.x;
      s6y *= gate.x;
      s6z *= gate.x;
      s6w *= gate.x;
      s7x *= gate.x;
      s7y *= gate.x;
      s7z *= gate.x;
      s7w *= gate.x;
      var prediction = prediction0;
      prediction += prediction1;
      prediction += prediction2;
      prediction += prediction3;
      let value = select(values.xy, values.zw, pair % 2u == 1u);
      let delta = gate.y * fma(vec2<f32>(-gate.x), prediction, value);
      if (work.isWindow && part == 0u && gives(work, begin + local)) {
        windowLog[deltaLog + 2u * localOf(work, begin + local) * logQuads] = delta;
      }
      even = vec2<f32>(0.0);
      odd = vec2<f32>(0.0);
      let q0 = staged[query + 0u];
      s0x = fma(vec2<f32>(k0.x), delta, s0x);
      even = fma(s0x, vec2<f32>(q0.x), even);
      s0y = fma(vec2<f32>(k0.y), delta, s0y);
      odd = fma(s0y, vec2<f32>(q0.y), odd);
      s0z = fma(vec2<f32>(k0.z), delta, s0z);
      even = fma(s0z, vec2<f32>(q0.z), even);
      s0w = fma(vec2<f32>(k0.w), delta, s0w);
      odd = fma(s0w, vec2<f32>(q0.w), odd);
      let q1 = staged[query + 1u];
      s1x = fma(vec2<f32>(k1.x), delta, s1x);
      even = fma(s1x, vec2<f32>(q1.x), even);
      s1y = fma(vec2<f32>(k1.y), delta, s1y);
      odd = fma(s1y, vec2<f32>(q1.y), odd);
      s1z = fma(vec2<f32>(k1.z), delta, s1z);
      even = fma(s1z, vec2<f32>(q1.z), even);
      s1w = fma(vec2<f32>(k1.w), delta, s1w);
      odd = fma(s1w, vec2<f32>(q1.w), odd);
      let q2 = staged[query + 2u];
      s2x = fma(vec2<f32>(k2.x), delta, s2x);
      even = fma(s2x, vec2<f32>(q2.x), even);
      s2y = fma(vec2<f32>(k2.y), delta, s2y);
      odd = fma(s2y, vec2<f32>(q2.y), odd);
      s2z = fma(vec2<f32>(k2.z), delta, s2z);
      even = fma(s2z, vec2<f32>(q2.z), even);
      s2w = fma(vec2<f32>(k2.w), delta, s2w);
      odd = fma(s2w, vec2<f32>(q2.w), odd);
      let q3 = staged[query + 3u];
      s3x = fma(vec2<f32>(k3.x), delta, s3x);
      even = fma(s3x, vec2<f32>(q3.x), even);
      s3y = fma(vec2<f32>(k3.y), delta, s3y);
      odd = fma(s3y, vec2<f32>(q3.y), odd);
      s3z = fma(vec2<f32>(k3.z), delta, s3z);
      even = fma(s3z, vec2<f32>(q3.z), even);
      s3w = fma(vec2<f32>(k3.w), delta, s3w);
      odd = fma(s3w, vec2<f32>(q3.w), odd);
      let q4 = staged[query + 4u];
      s4x = fma(vec2<f32>(k4.x), delta, s4x);
      even = fma(s4x, vec2<f32>(q4.x), even);
      s4y = fma(vec2<f32>(k4.y), delta, s4y);
      odd = fma(s4y, vec2<f32>(q4.y), odd);
      s4z = fma(vec2<f32>(k4.z), delta, s4z);
      even = fma(s4z, vec2<f32>(q4.z), even);
      s4w = fma(vec2<f32>(k4.w), delta, s4w);
      odd = fma(s4w, vec2<f32>(q4.w), odd);
      let q5 = staged[query + 5u];
      s5x = fma(vec2<f32>(k5.x), delta, s5x);
      even = fma(s5x, vec2<f32>(q5.x), even);
      s5y = fma(vec2<f32>(k5.y), delta, s5y);
      odd = fma(s5y, vec2<f32>(q5.y), odd);
      s5z = fma(vec2<f32>(k5.z), delta, s5z);
      even = fma(s5z, vec2<f32>(q5.z), even);
      s5w = fma(vec2<f32>(k5.w), delta, s5w);
      odd = fma(s5w, vec2<f32>(q5.w), odd);
      let q6 = staged[query + 6u];
      s6x = fma(vec2<f32>(k6.x), delta, s6x);
      even = fma(s6x, vec2<f32>(q6.x), even);
      s6y = fma(vec2<f32>(k6.y), delta, s6y);
      odd = fma(s6y, vec2<f32>(q6.y), odd);
      s6z = fma(vec2<f32>(k6.z), delta, s6z);
      even = fma(s6z, vec2<f32>(q6.z), even);
      s6w = fma(vec2<f32>(k6.w), delta, s6w);
      odd = fma(s6w, vec2<f32>(q6.w), odd);
      let q7 = staged[query + 7u];
      s7x = fma(vec2<f32>(k7.x), delta, s7x);
      even = fma(s7x, vec2<f32>(q7.x), even);
      s7y = fma(vec2<f32>(k7.y), delta, s7y);
      odd = fma(s7y, vec2<f32>(q7.y), odd);
      s7z = fma(vec2<f32>(k7.z), delta, s7z);
      even = fma(s7z, vec2<f32>(q7.z), even);
      s7w = fma(vec2<f32>(k7.w), delta, s7w);
      odd = fma(s7w, vec2<f32>(q7.w), odd);
      readings[turn + thread] = even + odd;
      if (local > 0u && part == 4u - 1u) { finishRow(local - 1u, pair); }
    }
    workgroupBarrier();
    if (part == 4u - 1u) { finishRow(count - 1u, pair); }
    workgroupBarrier();
    addSquares(count, valuePairs, thread);
    workgroupBarrier();
    if (thread + 0u < count * valueQuads) {
      let index = thread + 0u;
      let local = index / valueQuads;
      let o = vec4<f32>(outputs[2u * index], outputs[2u * index + 1u]);
      let scale = 1.0 / sqrt(sumOfSquares(local) / f32(128u) + paramFloat(5u));
      let column = work.head * 128u + 4u * (index % valueQuads);
      let row = work.first + localOf(work, begin + local);
      if (gives(work, begin + local)) { storeMixed(row, column, o * scale * (weight0 * siluOf(z0))); }
    }
  }
  if (work.isWindow) { return; }
  let next = work.nextSlot * statePairs + within;
  state[next + 0u * valuePairs] = s0x;
  state[next + (0u + 1u) * valuePairs] = s0y;
  state[next + (0u + 2u) * valuePairs] = s0z;
  state[next + (0u + 3u) * valuePairs] = s0w;
  state[next + 4u * valuePairs] = s1x;
  state[next + (4u + 1u) * valuePairs] = s1y;
  state[next + (4u + 2u) * valuePairs] = s1z;
  state[next + (4u + 3u) * valuePairs] = s1w;
  state[next + 8u * valuePairs] = s2x;
  state[next + (8u + 1u) * valuePairs] = s2y;
  state[next + (8u + 2u) * valuePairs] = s2z;
  state[next + (8u + 3u) * valuePairs] = s2w;
  state[next + 12u * valuePairs] = s3x;
  state[next + (12u + 1u) * valuePairs] = s3y;
  state[next + (12u + 2u) * valuePairs] = s3z;
  state[next + (12u + 3u) * valuePairs] = s3w;
  state[next + 16u * valuePairs] = s4x;
  state[next + (16u + 1u) * valuePairs] = s4y;
  state[next + (16u + 2u) * valuePairs] = s4z;
  state[next + (16u + 3u) * valuePairs] = s4w;
  state[next + 20u * valuePairs] = s5x;
  state[next + (20u + 1u) * valuePairs] = s5y;
  state[next + (20u + 2u) * valuePairs] = s5z;
  state[next + (20u + 3u) * valuePairs] = s5w;
  state[next + 24u * valuePairs] = s6x;
  state[next + (24u + 1u) * valuePairs] = s6y;
  state[next + (24u + 2u) * valuePairs] = s6z;
  state[next + (24u + 3u) * valuePairs] = s6w;
  state[next + 28u * valuePairs] = s7x;
  state[next + (28u + 1u) * valuePairs] = s7y;
  state[next + (28u + 2u) * valuePairs] = s7z;
  state[next + (28u + 3u) * valuePairs] = s7w;
  publishHistory(work, thread);
}
