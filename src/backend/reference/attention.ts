import type { PageId, Position } from "../../ids.ts";
import { pageRows } from "../../limits.ts";
import type { Rotation } from "../../model/rope.ts";
import { rmsNorm } from "./tensors.ts";

/** What attention needs to know of a model or a drafter. */
export interface HeadShape {
  readonly headCount: number;
  readonly kvHeadCount: number;
  readonly headDim: number;
  readonly normEps: number;
}

/** One layer's KV pages: page p, KV head h, row r stand at ((p · kv heads + h) · 64 + r) · head dim. */
export interface KvPages {
  readonly keys: Float32Array;
  readonly values: Float32Array;
}

/** Floats of one layer's keys, or values, in a page. */
export const pageFloats = ({ kvHeadCount, headDim }: HeadShape): number =>
  kvHeadCount * pageRows * headDim;

/** Where the KV vector of a place and head begins. */
export function kvOffset(
  { kvHeadCount, headDim }: HeadShape,
  pages: readonly PageId[],
  place: number,
  kvHead: number,
): number {
  const page = pages[Math.floor(place / pageRows)]!;
  return ((page * kvHeadCount + kvHead) * pageRows + (place % pageRows)) * headDim;
}

/** Rotates a vector's leading values, of which pairs lie half of them apart. */
export function rotate(
  vector: Float32Array,
  { frequencies, scale }: Rotation,
  position: Position,
): void {
  const half = frequencies.length;
  frequencies.forEach((frequency, i) => {
    const cos = scale * Math.cos(position * frequency);
    const sin = scale * Math.sin(position * frequency);
    const a = vector[i]!;
    const b = vector[i + half]!;
    vector[i] = a * cos - b * sin;
    vector[i + half] = b * cos + a * sin;
  });
}

/** out [heads, dim] = each head's vector, `stride` apart in `row`, normed and rotated. */
export function placeQueries(
  shape: HeadShape,
  norm: Float32Array,
  rotation: Rotation,
  row: { readonly vectors: Float32Array; readonly stride: number; readonly out: Float32Array },
  position: Position,
): void {
  const dim = shape.headDim;
  for (let head = 0; head < shape.headCount; head++) {
    const query = row.out.subarray(head * dim, (head + 1) * dim);
    const source = row.vectors.subarray(head * row.stride, head * row.stride + dim);
    rmsNorm(source, norm, shape.normEps, query);
    rotate(query, rotation, position);
  }
}

/** Writes a row's keys, normed and rotated, and its values to their place in the pages. */
export function placeKeys(
  shape: HeadShape,
  norm: Float32Array,
  rotation: Rotation,
  row: { readonly key: Float32Array; readonly value: Float32Array; readonly position: Position },
  pages: readonly PageId[],
  place: number,
  kv: KvPages,
): void {
  const dim = shape.headDim;
  for (let head = 0; head < shape.kvHeadCount; head++) {
    const at = kvOffset(shape, pages, place, head);
    const key = kv.keys.subarray(at, at + dim);
    rmsNorm(row.key.subarray(head * dim, (head + 1) * dim), norm, shape.normEps, key);
    rotate(key, rotation, row.position);
    kv.values.set(row.value.subarray(head * dim, (head + 1) * dim), at);
  }
}

/**
 * softmax(q·K / √dim)·V of one row, [heads, dim], over the keys at these places, in this order, which
 * is that of their positions.
 */
export function attend(
  shape: HeadShape,
  query: Float32Array,
  places: readonly number[],
  pages: readonly PageId[],
  kv: KvPages,
): Float64Array {
  const dim = shape.headDim;
  const attended = new Float64Array(shape.headCount * dim);
  for (let head = 0; head < shape.headCount; head++) {
    const kvHead = Math.floor(head / (shape.headCount / shape.kvHeadCount));
    const offsets = places.map((place) => kvOffset(shape, pages, place, kvHead));
    const scores = offsets.map((at) => {
      let dot = 0;
      for (let i = 0; i < dim; i++) dot += query[head * dim + i]! * kv.keys[at + i]!;
      return dot / Math.sqrt(dim);
    });
    const peak = scores.reduce((most, score) => Math.max(most, score), Number.NEGATIVE_INFINITY);
    const sums = attended.subarray(head * dim, (head + 1) * dim);
    let total = 0;
    offsets.forEach((at, index) => {
      const weight = Math.exp(scores[index]! - peak);
      total += weight;
      for (let i = 0; i < dim; i++) sums[i] = sums[i]! + weight * kv.values[at + i]!;
    });
    for (let i = 0; i < dim; i++) sums[i] = sums[i]! / total;
  }
  return attended;
}
