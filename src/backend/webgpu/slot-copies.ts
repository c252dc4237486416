import type { PageId, SlotId } from "../../ids.ts";
import { derivedSizes, type ModelShape } from "../../model/shape.ts";
import { concat } from "../arrays.ts";
import type { Snapshot } from "../backend.ts";
import type { KvRows } from "./kv-store.ts";
import type { Places } from "./places.ts";
import type { Range, Readback } from "./readback.ts";

const none: KvRows = { keys: new Float32Array(0), values: new Float32Array(0) };

/** Where something begins. */
type Start = Pick<Range, "buffer" | "offset">;

/** Copies what a slot holds, out and in. */
export class SlotCopies {
  readonly #device: GPUDevice;
  readonly #readback: Readback;
  readonly #places: Places;
  readonly #shape: ModelShape;

  constructor(device: GPUDevice, readback: Readback, places: Places, shape: ModelShape) {
    this.#device = device;
    this.#readback = readback;
    this.#places = places;
    this.#shape = shape;
  }

  /**
   * Everything of a slot after what was submitted so far.
   * @param history which of the conv histories is its latest
   * @param keepsLogits whether it has a kept row
   */
  async save(
    slot: SlotId,
    history: number,
    pages: readonly PageId[],
    rows: number,
    keepsLogits: boolean,
  ): Promise<Snapshot> {
    const { states, histories, kv, keptLogits, drafter } = this.#places;
    const { stateFloats, historyFloats } = derivedSizes(this.#shape);
    const { vocabSize } = this.#shape;
    const part = (of: Start, index: number, floats: number): Range => ({
      buffer: of.buffer,
      offset: of.offset + 4 * index * floats,
      bytes: 4 * floats,
    });
    const kept = { buffer: keptLogits, offset: 0 };
    const ranges = {
      state: states.map((layer) => part(layer, slot, stateFloats)),
      history: histories.map((layer) => part(layer, history, historyFloats)),
      logits: keepsLogits ? [part(kept, slot, vocabSize)] : [],
      kv: kv.ranges(pages, rows),
      draft: drafter?.kv.ranges(pages, rows) ?? [],
    };
    const parts = await this.#readback.bring(Object.values(ranges).flat());
    const next = (of: readonly Range[]) => parts.splice(0, of.length);
    const state = concat(next(ranges.state));
    const conv = concat(next(ranges.history));
    const [logits = null] = next(ranges.logits);
    const { keys, values } = kv.rowsFrom(next(ranges.kv), rows);
    const draft = drafter?.kv.rowsFrom(next(ranges.draft), rows) ?? none;
    return {
      rows,
      state,
      history: conv,
      keys,
      values,
      draftKeys: draft.keys,
      draftValues: draft.values,
      logits,
    };
  }

  /** Writes a snapshot of this shape into a slot and its pages. */
  restore(slot: SlotId, history: number, pages: readonly PageId[], snapshot: Snapshot): void {
    const { queue } = this.#device;
    const { states, histories, kv, keptLogits, drafter } = this.#places;
    const write = (layers: readonly Start[], index: number, all: Float32Array) => {
      const floats = all.length / Math.max(1, layers.length);
      layers.forEach(({ buffer, offset }, layer) => {
        const part = all.slice(layer * floats, (layer + 1) * floats);
        queue.writeBuffer(buffer, offset + 4 * index * floats, part);
      });
    };
    write(states, slot, snapshot.state);
    write(histories, history, snapshot.history);
    if (snapshot.logits) {
      const row = Float32Array.from(snapshot.logits);
      queue.writeBuffer(keptLogits, 4 * slot * this.#shape.vocabSize, row);
    }
    const { keys, values, draftKeys, draftValues } = snapshot;
    kv.write(queue, pages, snapshot.rows, { keys, values });
    drafter?.kv.write(queue, pages, snapshot.rows, { keys: draftKeys, values: draftValues });
  }

  /** A new slot's: zero. */
  clear(slot: SlotId): void {
    const { states, histories } = this.#places;
    const { stateFloats, historyFloats } = derivedSizes(this.#shape);
    const encoder = this.#device.createCommandEncoder();
    for (const { buffer, offset } of states) {
      encoder.clearBuffer(buffer, offset + 4 * slot * stateFloats, 4 * stateFloats);
    }
    for (const { buffer, offset } of histories) {
      encoder.clearBuffer(buffer, offset + 8 * slot * historyFloats, 8 * historyFloats);
    }
    this.#device.queue.submit([encoder.finish()]);
  }

  /** Logits of the latest pass's draws become what slots keep; null is none. */
  keepLogits(rows: readonly { readonly slot: SlotId; readonly draw: number | null }[]): void {
    if (rows.every(({ draw }) => draw === null)) return;
    const { arrays, keptLogits } = this.#places;
    const { buffer, stride } = arrays.rows.get("logits")!;
    const bytes = 4 * this.#shape.vocabSize;
    const encoder = this.#device.createCommandEncoder();
    for (const { slot, draw } of rows) {
      if (draw === null) continue;
      encoder.copyBufferToBuffer(buffer, 4 * draw * stride, keptLogits, slot * bytes, bytes);
    }
    this.#device.queue.submit([encoder.finish()]);
  }
}
