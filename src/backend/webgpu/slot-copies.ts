import type { PageId, SlotId } from "../../ids.ts";
import { pageRows } from "../../limits.ts";
import { derivedSizes, type ModelShape } from "../../model/shape.ts";
import { concat } from "../arrays.ts";
import type { Snapshot } from "../backend.ts";
import type { KvRows } from "./kv-store.ts";
import type { Places } from "./places.ts";
import type { Range, Readback } from "./readback.ts";

const none: KvRows = { keys: new Float32Array(0), values: new Float32Array(0) };

/** Where something begins. */
type Start = Pick<Range, "buffer" | "offset">;

/** What has `floats` at an index of an array of such. */
const part = ({ buffer, offset }: Start, index: number, floats: number): Range => ({
  buffer,
  offset: offset + 4 * index * floats,
  bytes: 4 * floats,
});

/** Copies what slots and pages hold, out, in and from one to another. */
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
   * Where a slot's state lies: each layer's, then each layer's conv history.
   * @param history which of the conv histories is its latest
   */
  stateOf(slot: SlotId, history: number): Range[] {
    const { states, histories } = this.#places;
    const { stateFloats, historyFloats } = derivedSizes(this.#shape);
    return [
      ...states.map((layer) => part(layer, slot, stateFloats)),
      ...histories.map((layer) => part(layer, history, historyFloats)),
    ];
  }

  /**
   * Everything of a stream after what was submitted so far.
   * @param of where its state lies, a slot's or a held one
   * @param kept the slot that has its kept logits row
   */
  async save(
    of: readonly Range[],
    kept: SlotId | null,
    pages: readonly PageId[],
    rows: number,
  ): Promise<Snapshot> {
    const { states, kv, keptLogits, drafter } = this.#places;
    const { vocabSize } = this.#shape;
    const ranges = {
      state: of.slice(0, states.length),
      history: of.slice(states.length),
      logits: kept === null ? [] : [part({ buffer: keptLogits, offset: 0 }, kept, vocabSize)],
      kv: kv.ranges(pages, rows),
      draft: drafter?.kv.ranges(pages, rows) ?? [],
    };
    const parts = await this.#readback.bring(Object.values(ranges).flat());
    const next = (asked: readonly Range[]) => parts.splice(0, asked.length);
    const state = concat(next(ranges.state));
    const history = concat(next(ranges.history));
    const [logits = null] = next(ranges.logits);
    const { keys, values } = kv.rowsFrom(next(ranges.kv), rows);
    const draft = drafter?.kv.rowsFrom(next(ranges.draft), rows) ?? none;
    return {
      rows,
      state,
      history,
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

  /** What a page holds becomes what another does, in every layer. */
  copyPage(from: PageId, to: PageId): void {
    const { kv, drafter, pageCopy } = this.#places;
    const encoder = this.#device.createCommandEncoder();
    for (const store of drafter ? [kv, drafter.kv] : [kv]) {
      const targets = store.ranges([to], pageRows);
      store.ranges([from], pageRows).forEach(({ buffer, offset, bytes }, index) => {
        const target = targets[index]!;
        // WebGPU copies no buffer to itself.
        encoder.copyBufferToBuffer(buffer, offset, pageCopy, 0, bytes);
        encoder.copyBufferToBuffer(pageCopy, 0, target.buffer, target.offset, bytes);
      });
    }
    this.#device.queue.submit([encoder.finish()]);
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
