// The inner product of one decoded weight block (four rows) with a tile of activation rows.
import { SCRATCH_BIAS, SCRATCH_DECODED } from "../layout";
import { horizontalSums, madd } from "./math";

/** Zeroes the tile's accumulators: [rows, 4 weight rows] vectors, and one bias vector a row. */
export function clearTile(scratch: usize, rows: i32): void {
  memory.fill(scratch, 0, (rows as usize) << 6);
  memory.fill(scratch + SCRATCH_BIAS, 0, (rows as usize) << 4);
}

/**
 * Adds the decoded step (`vectors` four-lane vectors, each for four weight rows) to the tile.
 * Affine weights: the step is a group; its chain starts at zero and enters the accumulators by one
 * multiply-add with the four scales. Dense weights (`scales` 0): the chain goes on in the accumulators.
 */
export function addStep(
  scratch: usize,
  rows: i32,
  vectors: i32,
  x: usize,
  xStride: usize,
  scales: usize,
): void {
  const end = scratch + SCRATCH_DECODED + ((vectors as usize) << 6);
  for (let r: i32 = 0; r < rows; r += 2) {
    const acc = scratch + ((r as usize) << 6);
    const one = r + 1 == rows;
    let xa = x + (r as usize) * xStride;
    let xb = one ? xa : xa + xStride;
    let a0 = f32x4.splat(0);
    let a1 = a0;
    let a2 = a0;
    let a3 = a0;
    let b0 = a0;
    let b1 = a0;
    let b2 = a0;
    let b3 = a0;
    if (!scales) {
      a0 = v128.load(acc);
      a1 = v128.load(acc, 16);
      a2 = v128.load(acc, 32);
      a3 = v128.load(acc, 48);
      b0 = v128.load(acc, 64);
      b1 = v128.load(acc, 80);
      b2 = v128.load(acc, 96);
      b3 = v128.load(acc, 112);
    }
    for (let w = scratch + SCRATCH_DECODED; w < end; w += 64) {
      const va = v128.load(xa);
      const vb = v128.load(xb);
      const w0 = v128.load(w);
      const w1 = v128.load(w, 16);
      const w2 = v128.load(w, 32);
      const w3 = v128.load(w, 48);
      a0 = madd(w0, va, a0);
      b0 = madd(w0, vb, b0);
      a1 = madd(w1, va, a1);
      b1 = madd(w1, vb, b1);
      a2 = madd(w2, va, a2);
      b2 = madd(w2, vb, b2);
      a3 = madd(w3, va, a3);
      b3 = madd(w3, vb, b3);
      xa += 16;
      xb += 16;
    }
    storeChains(acc, scales, a0, a1, a2, a3);
    if (!one) storeChains(acc + 64, scales, b0, b1, b2, b3);
  }
}

@inline
function storeChains(acc: usize, scales: usize, c0: v128, c1: v128, c2: v128, c3: v128): void {
  if (scales) {
    c0 = madd(c0, v128.load32_splat(scales), v128.load(acc));
    c1 = madd(c1, v128.load32_splat(scales, 4), v128.load(acc, 16));
    c2 = madd(c2, v128.load32_splat(scales, 8), v128.load(acc, 32));
    c3 = madd(c3, v128.load32_splat(scales, 12), v128.load(acc, 48));
  }
  v128.store(acc, c0);
  v128.store(acc, c1, 16);
  v128.store(acc, c2, 32);
  v128.store(acc, c3, 48);
}

/** bias[row] += four biases · the row's group sum. */
export function addBiases(
  scratch: usize,
  rows: i32,
  biases: usize,
  sums: usize,
  sumsStride: usize,
): void {
  const four = v128.load(biases);
  let bias = scratch + SCRATCH_BIAS;
  for (let r: i32 = 0; r < rows; r++) {
    v128.store(bias, madd(four, v128.load32_splat(sums), v128.load(bias)));
    bias += 16;
    sums += sumsStride;
  }
}

/** Writes (or adds) the finished four outputs of every row of the tile. */
export function finishTile(
  scratch: usize,
  rows: i32,
  out: usize,
  outStride: usize,
  accumulate: bool,
): void {
  let bias = scratch + SCRATCH_BIAS;
  for (let r: i32 = 0; r < rows; r++) {
    const y = f32x4.add(
      horizontalSums(
        v128.load(scratch),
        v128.load(scratch, 16),
        v128.load(scratch, 32),
        v128.load(scratch, 48),
      ),
      v128.load(bias),
    );
    v128.store(out, accumulate ? f32x4.add(v128.load(out), y) : y);
    scratch += 64;
    bias += 16;
    out += outStride;
  }
}
