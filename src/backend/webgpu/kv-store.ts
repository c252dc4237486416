import type { PageId } from "../../ids.ts";
import type { BufferPart } from "./device-memory.ts";
import type { KvPages } from "./kv-pages.ts";
import type { Range } from "./readback.ts";

/** Copies of keys and values: [layer, row, kv head, dim]. */
export interface KvRows {
  readonly keys: Float32Array;
  readonly values: Float32Array;
}

/** The KV pages of a model's layers, or of its drafter's. */
export class KvStore {
  readonly pages: KvPages;
  readonly keys: readonly BufferPart[];
  readonly values: readonly BufferPart[];

  constructor(pages: KvPages, keys: readonly BufferPart[], values: readonly BufferPart[]) {
    this.pages = pages;
    this.keys = keys;
    this.values = values;
  }

  /** What holds the rows [0, rows) of all layers. */
  ranges(pages: readonly PageId[], rows: number): Range[] {
    return [...this.keys, ...this.values].flatMap((layer) => this.pages.ranges(layer, pages, rows));
  }

  /** What `ranges` brought back. */
  rowsFrom(parts: readonly Float32Array[], rows: number): KvRows {
    const half = parts.length / 2;
    return {
      keys: this.#unpacked("keys", parts.slice(0, half), rows),
      values: this.#unpacked("values", parts.slice(half), rows),
    };
  }

  /** Writes rows [0, rows) into the pages. */
  write(queue: GPUQueue, pages: readonly PageId[], rows: number, copies: KvRows): void {
    const floats = rows * this.pages.rowFloats;
    for (const kind of ["keys", "values"] as const) {
      this[kind].forEach((layer, index) => {
        const own = copies[kind].subarray(index * floats, (index + 1) * floats);
        this.pages.write(queue, layer, kind, pages, rows, own);
      });
    }
  }

  #unpacked(kind: keyof KvRows, parts: readonly Float32Array[], rows: number): Float32Array {
    const floats = rows * this.pages.rowFloats;
    const layers = this[kind].length;
    const out = new Float32Array(layers * floats);
    const each = parts.length / Math.max(1, layers);
    for (let layer = 0; layer < layers; layer++) {
      const own = parts.slice(layer * each, (layer + 1) * each);
      this.pages.unpack(kind, own, rows, out.subarray(layer * floats, (layer + 1) * floats));
    }
    return out;
  }
}
