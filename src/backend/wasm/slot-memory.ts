import type { PageId, SlotId } from "../../ids.ts";
import { derivedSizes, type ModelShape } from "../../model/shape.ts";
import { concat, split } from "../arrays.ts";
import type { Snapshot } from "../backend.ts";
import type { StateArrays } from "../held.ts";
import type { Arena } from "./arena.ts";
import { PAGE_ROWS } from "./layout.ts";
import type { KvPlaces, Places } from "./places.ts";

/** What a snapshot takes from the pages. */
type PageArrays = Pick<Snapshot, "keys" | "values" | "draftKeys" | "draftValues">;

/** Slots and pages in the arena, as the host copies them in and out between passes. */
export class SlotMemory {
  readonly #arena: Arena;
  readonly #places: Places;
  readonly #stateFloats: number;
  readonly #historyFloats: number;

  constructor(arena: Arena, places: Places, shape: ModelShape) {
    const { stateFloats, historyFloats } = derivedSizes(shape);
    this.#arena = arena;
    this.#places = places;
    this.#stateFloats = stateFloats;
    this.#historyFloats = historyFloats;
  }

  clear(slot: SlotId): void {
    for (const array of [...this.#states(slot), ...this.#histories(slot)]) array.fill(0);
  }

  /** Copies a slot's state and history out, into the arrays of another where they are given. */
  readState(slot: SlotId, into?: StateArrays): StateArrays {
    return {
      state: concat(this.#states(slot), into?.state),
      history: concat(this.#histories(slot), into?.history),
    };
  }

  /** @param from of this shape */
  writeState(slot: SlotId, from: StateArrays): void {
    split(from.state, this.#states(slot));
    split(from.history, this.#histories(slot));
  }

  /** Copies the KV of places [0, rows) out. */
  readPages(pages: readonly PageId[], rows: number): PageArrays {
    const { kv, draft } = this.#places;
    const [keys, values] = this.#readKv(kv, pages, rows);
    const [draftKeys, draftValues] = draft
      ? this.#readKv(draft.kv, pages, rows)
      : [new Float32Array(0), new Float32Array(0)];
    return { keys, values, draftKeys, draftValues };
  }

  /** Writes what `readPages` gave. */
  writePages(pages: readonly PageId[], rows: number, from: PageArrays): void {
    const { kv, draft } = this.#places;
    this.#writeKv(kv, pages, rows, from.keys, from.values);
    if (draft) this.#writeKv(draft.kv, pages, rows, from.draftKeys, from.draftValues);
  }

  /** Copies a page's keys and values in every layer, the drafter's among them. */
  copyPage(from: PageId, to: PageId): void {
    const { kv, draft } = this.#places;
    for (const { keys, values, pageBytes } of draft ? [kv, draft.kv] : [kv]) {
      for (const layer of [...keys, ...values]) {
        const page = this.#arena.f32(layer + from * pageBytes, pageBytes / 4);
        this.#arena.f32(layer + to * pageBytes, pageBytes / 4).set(page);
      }
    }
  }

  #readKv(
    kv: KvPlaces,
    pages: readonly PageId[],
    rows: number,
  ): [keys: Float32Array, values: Float32Array] {
    const keys = new Float32Array(kv.keys.length * rows * kv.heads * kv.headDim);
    const values = new Float32Array(keys.length);
    this.#eachKv(kv, pages, rows, (keyRow, valueRow, at) => {
      keys.set(keyRow, at);
      values.set(valueRow, at);
    });
    return [keys, values];
  }

  #writeKv(
    kv: KvPlaces,
    pages: readonly PageId[],
    rows: number,
    keys: Float32Array,
    values: Float32Array,
  ): void {
    this.#eachKv(kv, pages, rows, (keyRow, valueRow, at) => {
      keyRow.set(keys.subarray(at, at + keyRow.length));
      valueRow.set(values.subarray(at, at + valueRow.length));
    });
  }

  /** Visits every KV vector of places [0, rows) with its place in a snapshot. */
  #eachKv(
    { keys, values, heads, headDim, pageBytes }: KvPlaces,
    pages: readonly PageId[],
    rows: number,
    visit: (key: Float32Array, value: Float32Array, at: number) => void,
  ): void {
    keys.forEach((keysAt, layer) => {
      for (let row = 0; row < rows; row++) {
        const page = pages[Math.floor(row / PAGE_ROWS)]! * pageBytes;
        for (let head = 0; head < heads; head++) {
          const within = page + 4 * (head * PAGE_ROWS + (row % PAGE_ROWS)) * headDim;
          visit(
            this.#arena.f32(keysAt + within, headDim),
            this.#arena.f32(values[layer]! + within, headDim),
            ((layer * rows + row) * heads + head) * headDim,
          );
        }
      }
    });
  }

  #states(slot: SlotId): Float32Array[] {
    return this.#places.states.map((at) =>
      this.#arena.f32(at + 4 * slot * this.#stateFloats, this.#stateFloats),
    );
  }

  #histories(slot: SlotId): Float32Array[] {
    return this.#places.histories.map((at) =>
      this.#arena.f32(at + 4 * slot * this.#historyFloats, this.#historyFloats),
    );
  }
}
