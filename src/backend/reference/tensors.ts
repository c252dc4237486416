import { dequantizeRows } from "../../weights/affine.ts";
import { widen } from "../../weights/floats.ts";
import type { Matrix } from "../../weights/weights.ts";

/** A whole matrix as f32 [rows, cols]. */
export async function readMatrix(matrix: Matrix): Promise<Float32Array> {
  if (matrix.kind === "dense") return widen(await matrix.read(0, matrix.rows), matrix.dtype);
  return dequantizeRows(await matrix.read(0, matrix.rows), matrix);
}

/** y[n] (+)= Σ_k W[n, k] · x[k], each sum in f64. */
export function multiply(
  weights: Float32Array,
  x: Float32Array,
  y: Float32Array,
  accumulate: boolean,
): void {
  const cols = x.length;
  for (let n = 0; n < y.length; n++) {
    let sum = 0;
    const base = n * cols;
    for (let k = 0; k < cols; k++) sum += weights[base + k]! * x[k]!;
    y[n] = accumulate ? y[n]! + sum : sum;
  }
}

/** out = x / √(mean(x²) + eps) · weight. */
export function rmsNorm(
  x: Float32Array,
  weight: Float32Array,
  eps: number,
  out: Float32Array,
): void {
  let squares = 0;
  for (const value of x) squares += value * value;
  const scale = 1 / Math.sqrt(squares / x.length + eps);
  for (let i = 0; i < x.length; i++) out[i] = x[i]! * scale * weight[i]!;
}

export const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x));
export const silu = (x: number): number => x * sigmoid(x);
export const softplus = (x: number): number => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));
