import type { ModelShape } from "../model/shape.ts";

/**
 * A matrix [rows, cols] in MLX affine form: value = scale · code + bias, code unsigned, groups of
 * `groupSize` along cols (spec of the format: `docs/formats.md`).
 */
export interface AffineMatrix {
  readonly kind: "affine";
  readonly rows: number;
  readonly cols: number;
  readonly bits: AffineBits;
  readonly groupSize: AffineGroupSize;
  /** What the file stores scales and biases as; f32 where the two differ. */
  readonly scaleType: FloatType;
  /** The values are random: a backend may make its own on the device instead of reading them. */
  readonly synthetic?: true;
  /** Streams `rowCount` rows from `firstRow`. */
  read(firstRow: number, rowCount: number): Promise<AffineRows>;
}

export interface AffineRows {
  /** [rowCount, cols · bits / 8] bytes: each row one little-endian bit stream. */
  readonly codes: Uint8Array;
  /** [rowCount, cols / groupSize], widened to f32. */
  readonly scales: Float32Array;
  /** [rowCount, cols / groupSize], widened to f32. */
  readonly biases: Float32Array;
}

/** A matrix [rows, cols] of floats as the file stores them. */
export interface DenseMatrix {
  readonly kind: "dense";
  readonly rows: number;
  readonly cols: number;
  readonly dtype: FloatType;
  /** Little-endian values [rowCount, cols] from `firstRow`. */
  read(firstRow: number, rowCount: number): Promise<Uint8Array>;
}

export type AffineBits = 2 | 3 | 4 | 5 | 6 | 8;
export type AffineGroupSize = 32 | 64 | 128;
export type FloatType = "bf16" | "f16" | "f32";
export type Matrix = AffineMatrix | DenseMatrix;

/**
 * A model's tensors by module path without the checkpoint's prefix, e.g. `embed_tokens`,
 * `layers.0.linear_attn.in_proj_qkv`, `layers.3.self_attn.q_proj`, `lm_head`.
 *
 * Vectors come as f32, ready to use: the five zero-centred norm families are already 1 + w;
 * `layers.i.linear_attn.conv1d` is [channels, taps]; `A_log` and `dt_bias` are as stored.
 */
export interface Weights {
  readonly shape: ModelShape;
  /** The same object each time; `lm_head` of a tied model is the embedding's matrix. */
  matrix(path: string): Matrix;
  vector(path: string): Promise<Float32Array>;
  /** Identifies the exact bytes: part of snapshot keys. */
  readonly fingerprint: string;
  /** Bytes of all tensors as stored. */
  readonly storedBytes: number;
}
