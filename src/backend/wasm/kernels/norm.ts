// Row-wise operations: RMSNorm, gated norm, SwiGLU, embedding rows, taps.
import {
  BLOCK_ROWS,
  KIND_AFFINE4,
  KIND_AFFINE8,
  KIND_BF16,
  MATRIX_COLS,
  MATRIX_DATA,
  MATRIX_FAR,
  MATRIX_GROUP,
  MATRIX_KIND,
  MATRIX_NARROW,
  MATRIX_SCALES,
} from "../layout";
import { embedFar } from "./far";
import { silu4, sumOfSquares } from "./math";
import { nextUnit, share } from "./sync";

/** out = x · rsqrt(mean(x²) + eps) · weight over `width` floats; the sum is math.ts sumOfSquares. */
@inline
export function rmsNorm(x: usize, width: i32, eps: f32, weight: usize, out: usize): void {
  const mean: f32 = sumOfSquares(x, width) / (width as f32) + eps;
  // An overflow must not end as a row of zeros: ∞ − ∞ is NaN, and the stream ends with an error.
  const scale: f32 = 1 / sqrt<f32>(mean) + (mean - mean);
  const s = f32x4.splat(scale);
  for (let i: usize = 0; i < (width as usize) << 2; i += 16) {
    const value = f32x4.mul(v128.load(x + i), s);
    v128.store(out + i, f32x4.mul(value, v128.load(weight + i)));
  }
}

/**
 * NORM. Operands: input, input stride, output, output stride, width, weight, eps; unit = row.
 * `list` (0 for none) names the source row of each output row.
 */
export function norm(op: usize, rows: i32, list: usize): void {
  const input = load<u32>(op, 8) as usize;
  const inputStride = load<u32>(op, 12) as usize;
  const output = load<u32>(op, 16) as usize;
  const outputStride = load<u32>(op, 20) as usize;
  share(rows);
  for (let row = nextUnit(); row >= 0; row = nextUnit()) {
    const source = list ? load<i32>(list + ((row as usize) << 2)) : row;
    rmsNorm(
      input + (source as usize) * inputStride,
      load<i32>(op, 24),
      load<f32>(op, 32),
      load<u32>(op, 28) as usize,
      output + (row as usize) * outputStride,
    );
  }
}

/**
 * GATED_NORM. Per row and value head: y = RMSNorm(o) · weight · silu(z), norm first.
 * Operands: o, stride, z, z stride, weight, heads, head width, eps, out, out stride.
 */
export function gatedNorm(op: usize, rows: i32): void {
  const heads = load<i32>(op, 28);
  const width = load<i32>(op, 32);
  const headBytes = (width as usize) << 2;
  share(rows * heads);
  for (let unit = nextUnit(); unit >= 0; unit = nextUnit()) {
    const row = (unit / heads) as usize;
    const at = ((unit % heads) as usize) * headBytes;
    const out = (load<u32>(op, 40) as usize) + row * (load<u32>(op, 44) as usize) + at;
    const z = (load<u32>(op, 16) as usize) + row * (load<u32>(op, 20) as usize) + at;
    const o = (load<u32>(op, 8) as usize) + row * (load<u32>(op, 12) as usize) + at;
    rmsNorm(o, width, load<f32>(op, 36), load<u32>(op, 24) as usize, out);
    for (let i: usize = 0; i < headBytes; i += 16) {
      v128.store(out + i, f32x4.mul(v128.load(out + i), silu4(v128.load(z + i))));
    }
  }
}

/** Floats of a SwiGLU unit. */
const SWIGLU_RUN: i32 = 256;

/** SWIGLU. gate = silu(gate) · up, in place. Operands: gate, stride, up, stride, width. */
export function swiglu(op: usize, rows: i32): void {
  const width = load<i32>(op, 24);
  const runs = (width + SWIGLU_RUN - 1) / SWIGLU_RUN;
  share(rows * runs);
  for (let unit = nextUnit(); unit >= 0; unit = nextUnit()) {
    const row = (unit / runs) as usize;
    const first = (unit % runs) * SWIGLU_RUN;
    const at = (first as usize) << 2;
    const gate = (load<u32>(op, 8) as usize) + row * (load<u32>(op, 12) as usize) + at;
    const up = (load<u32>(op, 16) as usize) + row * (load<u32>(op, 20) as usize) + at;
    const bytes = (min(SWIGLU_RUN, width - first) as usize) << 2;
    for (let i: usize = 0; i < bytes; i += 16) {
      v128.store(gate + i, f32x4.mul(silu4(v128.load(gate + i)), v128.load(up + i)));
    }
  }
}

/** TAP. Copies rows aside. Operands: input, stride, output, stride, width. */
export function tap(op: usize, rows: i32): void {
  share(rows);
  for (let row = nextUnit(); row >= 0; row = nextUnit()) {
    memory.copy(
      (load<u32>(op, 16) as usize) + (row as usize) * (load<u32>(op, 20) as usize),
      (load<u32>(op, 8) as usize) + (row as usize) * (load<u32>(op, 12) as usize),
      (load<i32>(op, 24) as usize) << 2,
    );
  }
}

/** EMBED. out[row] = E[id]: scale · code + bias, or the float. Operands: matrix, out, out stride. */
export function embed(op: usize, rows: i32, ids: usize): void {
  const matrix = load<u32>(op, 8) as usize;
  share(rows);
  for (let row = nextUnit(); row >= 0; row = nextUnit()) {
    const id = load<i32>(ids + ((row as usize) << 2));
    const out = (load<u32>(op, 12) as usize) + (row as usize) * (load<u32>(op, 16) as usize);
    const far = load<i32>(matrix, MATRIX_FAR);
    if (far) embedFar(far, matrix, id, out);
    else embedRow(matrix, id, out);
  }
}

/** A row of a matrix as floats. */
export function embedRow(matrix: usize, id: i32, out: usize): void {
  const kind = load<i32>(matrix, MATRIX_KIND);
  const cols = load<i32>(matrix, MATRIX_COLS);
  const group = load<i32>(matrix, MATRIX_GROUP);
  const block = (id / BLOCK_ROWS) as usize;
  const lane = (id % BLOCK_ROWS) as usize;
  const data = (load<u32>(matrix, MATRIX_DATA) as usize) + (lane << 4);
  const bits = kind == KIND_AFFINE4 ? 4 : kind == KIND_AFFINE8 ? 8 : kind == KIND_BF16 ? 16 : 32;
  const step = 128 / bits;
  const codes = data + block * ((cols / step) as usize) * 64;
  const groups = group ? cols / group : 0;
  const scaleBytes: usize = load<i32>(matrix, MATRIX_NARROW) ? 2 : 4;
  const scales =
    (load<u32>(matrix, MATRIX_SCALES) as usize) + block * ((groups as usize) << 3) * scaleBytes;
  for (let c: i32 = 0; c < cols; c++) {
    const within = c % step;
    const word = codes + ((c / step) as usize) * 64 + (((within & 3) as usize) << 2);
    const j = within >> 2;
    let value: f32;
    if (group) {
      const code = (load<u32>(word) >> (j * bits)) & ((1 << bits) - 1);
      const at = scales + ((((c / group) as usize) << 3) + lane) * scaleBytes;
      value = floatAt(at, scaleBytes) * (code as f32) + floatAt(at + 4 * scaleBytes, scaleBytes);
    } else if (kind == KIND_BF16) {
      value = reinterpret<f32>(j ? load<u32>(word) & 0xffff0000 : load<u32>(word) << 16);
    } else {
      value = load<f32>(word);
    }
    store<f32>(out + ((c as usize) << 2), value);
  }
}

/** An f32, or a bf16 widened. */
@inline
function floatAt(at: usize, bytes: usize): f32 {
  return bytes == 4 ? load<f32>(at) : reinterpret<f32>((load<u16>(at) as u32) << 16);
}
