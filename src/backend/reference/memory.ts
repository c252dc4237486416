import type { PageId } from "../../ids.ts";
import { drafterSizes, featureRowsOf } from "../../model/drafter-shape.ts";
import type { Segment } from "../../model/plan.ts";
import { derivedSizes } from "../../model/shape.ts";
import { concat, split } from "../arrays.ts";
import type { BackendOptions } from "../backend.ts";
import type { StateArrays } from "../held.ts";
import { type HeadShape, type KvPages, kvOffset, pageFloats } from "./attention.ts";

/** What a slot remembers; state and history are one array a linear layer. */
export interface SlotState {
  readonly state: Float32Array[];
  /** [taps − 1, channels], oldest first. */
  readonly history: Float32Array[];
  /** The drafter's features of the latest places, each at its place mod their count. */
  readonly features: Float32Array[];
}

/** KV pages of the layers of a model or a drafter. */
export interface KvStore {
  readonly shape: HeadShape;
  readonly layers: readonly KvPages[];
}

export interface ReferenceMemory {
  readonly slots: readonly SlotState[];
  readonly kv: KvStore;
  /** Without layers where there is no drafter. */
  readonly draftKv: KvStore;
  readonly stateBytes: number;
  readonly kvBytes: number;
}

export function referenceMemory(options: BackendOptions): ReferenceMemory {
  const { shape } = options.weights;
  const drafter = options.drafter?.weights.shape ?? null;
  const { linearLayers, fullLayers, stateFloats, historyFloats } = derivedSizes(shape);
  const featureRows = drafter ? featureRowsOf(options.rowsMax) : 0;
  const featureDim = drafter ? drafterSizes(drafter).featureDim : 0;
  const kv = kvStore(shape, fullLayers, options.pages);
  const draftKv = kvStore(drafter ?? shape, drafter?.layers.length ?? 0, options.pages);
  const slotFloats = linearLayers * (stateFloats + historyFloats) + featureRows * featureDim;
  return {
    slots: Array.from({ length: options.slots }, () => ({
      state: arrays(linearLayers, stateFloats),
      history: arrays(linearLayers, historyFloats),
      features: arrays(featureRows, featureDim),
    })),
    kv,
    draftKv,
    stateBytes: 4 * options.slots * slotFloats,
    kvBytes: [...kv.layers, ...draftKv.layers].reduce(
      (sum, { keys, values }) => sum + keys.byteLength + values.byteLength,
      0,
    ),
  };
}

function kvStore(shape: HeadShape, layers: number, pages: number): KvStore {
  const floats = pages * pageFloats(shape);
  return {
    shape,
    layers: Array.from({ length: layers }, () => ({
      keys: new Float32Array(floats),
      values: new Float32Array(floats),
    })),
  };
}

const arrays = (count: number, length: number): Float32Array[] =>
  Array.from({ length: count }, () => new Float32Array(length));

/** Copies a slot's state and history out, into the arrays of another where they are given. */
export const readState = ({ state, history }: SlotState, into?: StateArrays): StateArrays => ({
  state: concat(state, into?.state),
  history: concat(history, into?.history),
});

/** Writes what `readState` gave. */
export function writeState(slot: SlotState, { state, history }: StateArrays): void {
  split(state, slot.state);
  split(history, slot.history);
}

/** The features of a place. */
export const featuresOf = ({ features }: SlotState, place: number): Float32Array =>
  features[place % features.length]!;

/** Moves a kept path's KV rows, and features, to the places of a chain of just them. */
export function movePath(
  { kv, draftKv, slots }: ReferenceMemory,
  { stateSlot, start, pages }: Segment,
  path: readonly number[],
): void {
  const slot = slots[stateSlot]!;
  // Rows ascend along a path, so that none is overwritten before it is moved.
  path.forEach((row, depth) => {
    if (row === depth) return;
    copyRow(kv, pages, start + row, start + depth);
    if (draftKv.layers.length > 0) {
      featuresOf(slot, start + depth).set(featuresOf(slot, start + row));
    }
  });
}

function copyRow(
  { shape, layers }: KvStore,
  pages: readonly PageId[],
  from: number,
  to: number,
): void {
  for (const { keys, values } of layers) {
    for (let head = 0; head < shape.kvHeadCount; head++) {
      const at = kvOffset(shape, pages, from, head);
      const target = kvOffset(shape, pages, to, head);
      keys.copyWithin(target, at, at + shape.headDim);
      values.copyWithin(target, at, at + shape.headDim);
    }
  }
}

/** Copies a page's keys and values in every layer. */
export function copyPage({ shape, layers }: KvStore, from: PageId, to: PageId): void {
  const floats = pageFloats(shape);
  for (const { keys, values } of layers) {
    keys.copyWithin(to * floats, from * floats, (from + 1) * floats);
    values.copyWithin(to * floats, from * floats, (from + 1) * floats);
  }
}

/** The keys and values of places [0, rows), each [layer, row, kv head, head dim]. */
export function readKv(store: KvStore, pages: readonly PageId[], rows: number): KvPages {
  const { kvHeadCount, headDim } = store.shape;
  const floats = store.layers.length * rows * kvHeadCount * headDim;
  const out = { keys: new Float32Array(floats), values: new Float32Array(floats) };
  eachVector(store, pages, rows, (layer, inPages, inSnapshot) => {
    out.keys.set(layer.keys.subarray(inPages, inPages + headDim), inSnapshot);
    out.values.set(layer.values.subarray(inPages, inPages + headDim), inSnapshot);
  });
  return out;
}

/** Writes what `readKv` gave. */
export function writeKv(
  store: KvStore,
  pages: readonly PageId[],
  rows: number,
  { keys, values }: KvPages,
): void {
  const width = store.shape.headDim;
  eachVector(store, pages, rows, (layer, inPages, inSnapshot) => {
    layer.keys.set(keys.subarray(inSnapshot, inSnapshot + width), inPages);
    layer.values.set(values.subarray(inSnapshot, inSnapshot + width), inPages);
  });
}

function eachVector(
  { shape, layers }: KvStore,
  pages: readonly PageId[],
  rows: number,
  visit: (layer: KvPages, inPages: number, inSnapshot: number) => void,
): void {
  let inSnapshot = 0;
  for (const layer of layers) {
    for (let row = 0; row < rows; row++) {
      for (let head = 0; head < shape.kvHeadCount; head++) {
        visit(layer, kvOffset(shape, pages, row, head), inSnapshot);
        inSnapshot += shape.headDim;
      }
    }
  }
}
