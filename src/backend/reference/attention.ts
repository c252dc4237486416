import type { PageId, Position } from "../../ids.ts";
import { pageRows } from "../../limits.ts";
import type { ModelShape } from "../../model/shape.ts";
import { rmsNorm, sigmoid } from "./tensors.ts";

/** One layer's KV pages: page p, KV head h, row r stand at ((p · kv heads + h) · 64 + r) · head dim. */
export interface KvPages {
  readonly keys: Float32Array;
  readonly values: Float32Array;
}

/** Where the KV vector of a position and head begins. */
export function kvOffset(
  shape: ModelShape,
  pages: readonly PageId[],
  position: Position,
  kvHead: number,
): number {
  const page = pages[Math.floor(position / pageRows)]!;
  const row = (page * shape.kvHeadCount + kvHead) * pageRows + (position % pageRows);
  return row * shape.headDim;
}

/** Rotates the leading `rotaryDim` values: pairs (i, i + half) by position · θ^(−2i / rotaryDim). */
export function rotate(shape: ModelShape, vector: Float32Array, position: Position): void {
  const half = shape.rotaryDim / 2;
  for (let i = 0; i < half; i++) {
    const angle = position * shape.ropeTheta ** ((-2 * i) / shape.rotaryDim);
    const a = vector[i]!;
    const b = vector[i + half]!;
    vector[i] = a * Math.cos(angle) - b * Math.sin(angle);
    vector[i + half] = b * Math.cos(angle) + a * Math.sin(angle);
  }
}

/** Norms and rotates one row's queries and keys; writes keys and values to their page. */
export function placeRow(
  shape: ModelShape,
  norms: { readonly query: Float32Array; readonly key: Float32Array },
  row: {
    readonly queryGate: Float32Array;
    readonly key: Float32Array;
    readonly value: Float32Array;
    readonly query: Float32Array;
  },
  position: Position,
  pages: readonly PageId[],
  kv: KvPages,
): void {
  const dim = shape.headDim;
  for (let head = 0; head < shape.headCount; head++) {
    const query = row.query.subarray(head * dim, (head + 1) * dim);
    const source = row.queryGate.subarray(2 * head * dim, (2 * head + 1) * dim);
    rmsNorm(source, norms.query, shape.normEps, query);
    rotate(shape, query, position);
  }
  for (let head = 0; head < shape.kvHeadCount; head++) {
    const at = kvOffset(shape, pages, position, head);
    const key = kv.keys.subarray(at, at + dim);
    rmsNorm(row.key.subarray(head * dim, (head + 1) * dim), norms.key, shape.normEps, key);
    rotate(shape, key, position);
    kv.values.set(row.value.subarray(head * dim, (head + 1) * dim), at);
  }
}

/** attended = softmax(q·K / √dim)·V ⊙ sigmoid(gate) for one row at `position`. */
export function attendRow(
  shape: ModelShape,
  query: Float32Array,
  queryGate: Float32Array,
  position: Position,
  pages: readonly PageId[],
  kv: KvPages,
  attended: Float32Array,
): void {
  const dim = shape.headDim;
  const scores = new Float64Array(position + 1);
  for (let head = 0; head < shape.headCount; head++) {
    const kvHead = Math.floor(head / (shape.headCount / shape.kvHeadCount));
    let peak = Number.NEGATIVE_INFINITY;
    for (let key = 0; key <= position; key++) {
      const at = kvOffset(shape, pages, key, kvHead);
      let dot = 0;
      for (let i = 0; i < dim; i++) dot += query[head * dim + i]! * kv.keys[at + i]!;
      scores[key] = dot / Math.sqrt(dim);
      peak = Math.max(peak, scores[key]!);
    }
    let total = 0;
    for (let key = 0; key <= position; key++) {
      scores[key] = Math.exp(scores[key]! - peak);
      total += scores[key]!;
    }
    const sums = new Float64Array(dim);
    for (let key = 0; key <= position; key++) {
      const at = kvOffset(shape, pages, key, kvHead);
      for (let i = 0; i < dim; i++) sums[i] = sums[i]! + scores[key]! * kv.values[at + i]!;
    }
    for (let i = 0; i < dim; i++) {
      const gate = sigmoid(queryGate[(2 * head + 1) * dim + i]!);
      attended[head * dim + i] = (sums[i]! / total) * gate;
    }
  }
}
