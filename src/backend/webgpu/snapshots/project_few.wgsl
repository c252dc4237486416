// PROJECT_FEW: project_tiles.wgsl (which see for x, W and y) for a pass of at most 2 × 8 rows, or of one (ONE),
// bit by bit. Called for every projection of a plain decode step and of a small verify round of the f16 class.
//
// A workgroup is one warp (32 threads), which makes 2 × 2 tiles of 16 outputs by 8 rows, so that its
// barriers cost next to nothing. How many warps fit a core is what limits it: W goes through workgroup memory
// half a block (32 columns) at a time, in rows of 40 halves (no bank conflicts). Codes are loaded 1 blocks
// ahead, by as many copies of the loop's body; where slices are EVEN, nothing in it is conditional, and what is
// left of 1 stands behind it. x comes a block at a time; of one row, 1 blocks at a time, a vec4 a thread: the
// matrix unit still makes 8 rows, and the others' x is whatever lies there.
//
// Exactness: the chain of products of each tile is project_tiles.wgsl's. Rows of y past the pass's, up to whole
// tiles, are overwritten with what nobody reads: a NaN in one row of a tile stays in that row.
//
// A slice is gone over 1 blocks at a time, while 1 of them are left; then 0 blocks once. EVEN: all
// slices have as many blocks. A block of x is 0 vec4 after the one before it (0: it takes its place).
// What the kernels of tiles share: the layout of their operands (tiles.ts packs it) and how codes become f16.
//
// W: [blocks of 16 rows, blocks of 64 columns, chunks, 32 lanes] of 16 bytes; lane 16·h + r has columns
// 16·t + 8·h … + 7 of row r, t = 0 … 3. Codes become f16: up to 4 bits by an f16 fma with f16 scale and bias,
// 8 bits by an f32 fma, then rounded.
// x: [blocks of 8 rows, blocks of 64 columns, 8 rows, 64 columns] f16 (pass.wgsl inputAt).
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
  return bitcast<f32>(passWords[passWords[8] + row * 128u + index]);
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

@group(0) @binding(2) var<storage, read> input: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> codes: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> scales: array<u32>;
@group(0) @binding(5) var<storage, read_write> output: array<f32>;

// Eight codes: nibbles i and i + 4 are columns 2·i and 2·i + 1. 0x6400 is 1024, whose last bits count ones, so
// that a code four bits further up counts sixteens. Both are exact.
fn lowCodes(word: u32) -> vec2<f16> {
  return bitcast<vec2<f16>>((word & 0x000f000fu) | 0x64006400u) - vec2<f16>(1024.0h);
}
fn highCodes(word: u32) -> vec2<f16> {
  let sixteens = bitcast<vec2<f16>>((word & 0x00f000f0u) | 0x64006400u);
  return fma(sixteens, vec2<f16>(0.0625h), vec2<f16>(-64.0h));
}
fn widen(word: u32, scale: vec2<f16>, bias: vec2<f16>) -> vec4<u32> {
  return vec4<u32>(
    bitcast<u32>(fma(lowCodes(word), scale, bias)),
    bitcast<u32>(fma(highCodes(word), scale, bias)),
    bitcast<u32>(fma(lowCodes(word >> 8u), scale, bias)),
    bitcast<u32>(fma(highCodes(word >> 8u), scale, bias)),
  );
}
// What the matrix unit does, in one thread: rows g and g + 8 of a tile by columns c and c + 1. The kernel says
// how far apart rows lie in workgroup memory (line of W, apart of x) and how many vec4 of each are multiplied.
fn products(left: u32, right: u32, sums: vec4<f32>) -> vec4<f32> {
  var out = sums;
  for (var j = 0u; j < depth; j++) {
    let top = w[left + j];
    let bottom = w[left + 8u * line + j];
    let first = xs[right + j];
    let second = xs[right + apart + j];
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
fn store(to: u32, sums: vec4<f32>) {
  output[to] = sums.x;
  output[to + param(2u)] = sums.y;
  output[to + 8u] = sums.z;
  output[to + 8u + param(2u)] = sums.w;
}


// Rows of W: 32 halves and 8 of padding, in vec4. Rows of x: 64 and 8; with one row they overlap, just far
// enough apart to avoid conflicts.
const line = 5u;
const depth = 4u;
const tile = 16u * line;
const apart = 9u;

var<workgroup> w: array<vec4<u32>, 2 * 80>;
const xsLength = 2u * 72u;
var<workgroup> xs: array<vec4<u32>, xsLength>;

// params: 0 blocks of 64 columns, 1 of them a slice, 2 output stride, 3 floats from slice to slice,
// 4 first output column
@compute @workgroup_size(32)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let warp = 0u;
  // Always zero. Where the compiler knows that, NVIDIA's driver makes code that is a sixth slower.
  let wAt = warp * 2u * tile;
  let xAt = warp * xsLength;
  let blocks = param(0u);
  let firstBlock = group.z * param(1u);
  let steps = min(param(1u), blocks - firstBlock);
  let last = steps - 1u;
  let row = lane % 16u;
  let put = wAt + row * line + lane / 16u;
  let block0 = (group.x * 2u + 0u) * blocks + firstBlock;
  let c0 = block0 * 1u * 32u + lane;
  let s0 = block0 * 1u * 16u + row;
  var q0_0_0 = codes[c0 + (min(0u, last) * 1u + 0u) * 32u];
  var e0_0_0 = scales[s0 + (min(0u, last) * 1u + 0u) * 16u];
  var acc0_0 = vec4<f32>(0.0);
  var acc0_1 = vec4<f32>(0.0);
  let block1 = (group.x * 2u + 1u) * blocks + firstBlock;
  let c1 = block1 * 1u * 32u + lane;
  let s1 = block1 * 1u * 16u + row;
  var q1_0_0 = codes[c1 + (min(0u, last) * 1u + 0u) * 32u];
  var e1_0_0 = scales[s1 + (min(0u, last) * 1u + 0u) * 16u];
  var acc1_0 = vec4<f32>(0.0);
  var acc1_1 = vec4<f32>(0.0);
  let xFrom0 = (0u * blocks + firstBlock) * 64u + 0u * 32u + lane;
  let xTo0 = xAt + 0u * 9u + lane / 8u * 9u + lane % 8u;
  var x0 = input[xFrom0];
  let xFrom1 = (0u * blocks + firstBlock) * 64u + 1u * 32u + lane;
  let xTo1 = xAt + 4u * 9u + lane / 8u * 9u + lane % 8u;
  var x1 = input[xFrom1];
  let xFrom2 = (1u * blocks + firstBlock) * 64u + 0u * 32u + lane;
  let xTo2 = xAt + 8u * 9u + lane / 8u * 9u + lane % 8u;
  var x2 = input[xFrom2];
  let xFrom3 = (1u * blocks + firstBlock) * 64u + 1u * 32u + lane;
  let xTo3 = xAt + 12u * 9u + lane / 8u * 9u + lane % 8u;
  var x3 = input[xFrom3];
  var step = 0u;
  for (; step + 1u <= steps; step += 1u) {
    {
      // The codes of the next chunk are on their way while this one is computed.
      let ahead = min(step + 1u, last);
      xs[xTo0] = x0;
      x0 = input[xFrom0 + min(step + 1u, last) * 64u];
      xs[xTo1] = x1;
      x1 = input[xFrom1 + min(step + 1u, last) * 64u];
      xs[xTo2] = x2;
      x2 = input[xFrom2 + min(step + 1u, last) * 64u];
      xs[xTo3] = x3;
      x3 = input[xFrom3 + min(step + 1u, last) * 64u];
      {
        let at = put + 0u * tile;
        let pair = bitcast<vec2<f16>>(e0_0_0);
        w[at] = widen(q0_0_0[0u], pair.xx, pair.yy);
        w[at + 2u] = widen(q0_0_0[0u + 1u], pair.xx, pair.yy);
      }
      {
        let at = put + 1u * tile;
        let pair = bitcast<vec2<f16>>(e1_0_0);
        w[at] = widen(q1_0_0[0u], pair.xx, pair.yy);
        w[at + 2u] = widen(q1_0_0[0u + 1u], pair.xx, pair.yy);
      }
      workgroupBarrier();
      acc0_0 = products(wAt + 0u * tile + lane / 4u * line,
        xAt + 0u * 72u + 0u + 0u + lane % 4u * 2u * apart, acc0_0);
      acc0_1 = products(wAt + 0u * tile + lane / 4u * line,
        xAt + 1u * 72u + 0u + 0u + lane % 4u * 2u * apart, acc0_1);
      acc1_0 = products(wAt + 1u * tile + lane / 4u * line,
        xAt + 0u * 72u + 0u + 0u + lane % 4u * 2u * apart, acc1_0);
      acc1_1 = products(wAt + 1u * tile + lane / 4u * line,
        xAt + 1u * 72u + 0u + 0u + lane % 4u * 2u * apart, acc1_1);
      workgroupBarrier();
      {
        let at = put + 0u * tile;
        let pair = bitcast<vec2<f16>>(e0_0_0);
        w[at] = widen(q0_0_0[2u], pair.xx, pair.yy);
        w[at + 2u] = widen(q0_0_0[2u + 1u], pair.xx, pair.yy);
        q0_0_0 = codes[c0 + (ahead * 1u + 0u) * 32u];
        e0_0_0 = scales[s0 + (ahead * 1u + 0u) * 16u];
      }
      {
        let at = put + 1u * tile;
        let pair = bitcast<vec2<f16>>(e1_0_0);
        w[at] = widen(q1_0_0[2u], pair.xx, pair.yy);
        w[at + 2u] = widen(q1_0_0[2u + 1u], pair.xx, pair.yy);
        q1_0_0 = codes[c1 + (ahead * 1u + 0u) * 32u];
        e1_0_0 = scales[s1 + (ahead * 1u + 0u) * 16u];
      }
      workgroupBarrier();
      acc0_0 = products(wAt + 0u * tile + lane / 4u * line,
        xAt + 0u * 72u + 0u + 4u + lane % 4u * 2u * apart, acc0_0);
      acc0_1 = products(wAt + 0u * tile + lane / 4u * line,
        xAt + 1u * 72u + 0u + 4u + lane % 4u * 2u * apart, acc0_1);
      acc1_0 = products(wAt + 1u * tile + lane / 4u * line,
        xAt + 0u * 72u + 0u + 4u + lane % 4u * 2u * apart, acc1_0);
      acc1_1 = products(wAt + 1u * tile + lane / 4u * line,
        xAt + 1u * 72u + 0u + 4u + lane % 4u * 2u * apart, acc1_1);
      workgroupBarrier();
    }
  }
  {
  }
  let origin = group.z * param(3u) + param(4u) + group.x * 2u * 16u;
  store(origin + (0u + lane % 4u * 2u) * param(2u) + 0u + lane / 4u, acc0_0);
  store(origin + (8u + lane % 4u * 2u) * param(2u) + 0u + lane / 4u, acc0_1);
  store(origin + (0u + lane % 4u * 2u) * param(2u) + 16u + lane / 4u, acc1_0);
  store(origin + (8u + lane % 4u * 2u) * param(2u) + 16u + lane / 4u, acc1_1);
}
