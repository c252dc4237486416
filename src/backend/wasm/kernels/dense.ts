// Float weight blocks: four rows side by side, one cache line a step.
//
// bf16: a step is 8 columns; word l of a row's 16 bytes holds column l in its low half and column
// 4 + l in its high half. f32: a step is 4 columns.
import { DENSE_STEP, KIND_BF16, SCRATCH_DECODED } from "../layout";
import { addStep, clearTile, finishTile } from "./tile";

/** The block's four outputs for every activation row of a tile. `cols` is a multiple of 8. */
export function denseTile(
  data: usize,
  kind: i32,
  cols: i32,
  rows: i32,
  x: usize,
  xStride: usize,
  scratch: usize,
  out: usize,
  outStride: usize,
  accumulate: bool,
): void {
  clearTile(scratch, rows);
  for (let k: i32 = 0; k < cols; k += DENSE_STEP) {
    const width = min(DENSE_STEP, cols - k);
    let decoded = scratch + SCRATCH_DECODED;
    if (kind == KIND_BF16) {
      for (let c: i32 = 0; c < width; c += 8) {
        for (let n: usize = 0; n < 64; n += 16) {
          const pair = v128.load(data + n);
          v128.store(decoded + n, i32x4.shl(pair, 16));
          v128.store(decoded + n, v128.and(pair, i32x4.splat(0xffff0000)), 64);
        }
        data += 64;
        decoded += 128;
      }
    } else {
      memory.copy(decoded, data, (width as usize) << 4);
      data += (width as usize) << 4;
    }
    addStep(scratch, rows, width >> 2, x, xStride, 0);
    x += (width as usize) << 2;
  }
  finishTile(scratch, rows, out, outStride, accumulate);
}
