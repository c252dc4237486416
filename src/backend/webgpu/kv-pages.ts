import type { PageId } from "../../ids.ts";
import { pageRows } from "../../limits.ts";
import { f16FromF32, f32FromF16 } from "../../weights/floats.ts";
import type { BufferPart } from "./device-memory.ts";
import type { Range } from "./readback.ts";

export type KvType = "f32" | "f16";
type Kind = "keys" | "values";

/** What KV pages depend on. */
export interface KvShape {
  readonly kvHeadCount: number;
  readonly headDim: number;
}

/**
 * The KV pages of a layer, as `kernels/attend.wgsl` reads them: a page's keys are
 * [KV head, dim / 4, row, 4], its values [KV head, row, dim]. Copies go in and out as
 * [row, KV head, dim] of f32, which hold 16-bit values exactly.
 */
export class KvPages {
  readonly bits: 16 | 32;
  readonly pageBytes: number;
  readonly #shape: KvShape;

  constructor(shape: KvShape, type: KvType) {
    this.#shape = shape;
    this.bits = type === "f16" ? 16 : 32;
    this.pageBytes = (this.bits / 8) * shape.kvHeadCount * pageRows * shape.headDim;
  }

  /** Floats of a row's keys, or values. */
  get rowFloats(): number {
    return this.#shape.kvHeadCount * this.#shape.headDim;
  }

  /** The pages that hold [0, rows), whole. */
  ranges({ buffer, offset }: BufferPart, pages: readonly PageId[], rows: number): Range[] {
    const bytes = this.pageBytes;
    return pages
      .slice(0, Math.ceil(rows / pageRows))
      .map((page) => ({ buffer, offset: offset + page * bytes, bytes }));
  }

  /** What `ranges` brought back, as rows; `out` is [rows, KV head, dim]. */
  unpack(kind: Kind, parts: readonly Float32Array[], rows: number, out: Float32Array): void {
    const views = parts.map((part) =>
      this.bits === 32 ? part : new Uint16Array(part.buffer, part.byteOffset, 2 * part.length),
    );
    let at = 0;
    for (let row = 0; row < rows; row++) {
      const page = views[Math.floor(row / pageRows)]!;
      this.#eachVector(kind, row % pageRows, (from) => {
        for (let i = 0; i < 4; i++) {
          const value = page[from + i]!;
          out[at++] = this.bits === 32 ? value : f32FromF16(value);
        }
      });
    }
  }

  /** Writes rows [0, rows) of `values` into the pages; what follows in the last page stays. */
  write(
    queue: GPUQueue,
    { buffer, offset: first }: BufferPart,
    kind: Kind,
    pages: readonly PageId[],
    rows: number,
    values: Float32Array,
  ): void {
    for (let row = 0; row < rows; row += pageRows) {
      const count = Math.min(pageRows, rows - row);
      const packed = this.#pack(kind, values.subarray(row * this.rowFloats), count);
      const offset = first + pages[row / pageRows]! * this.pageBytes;
      // A row's elements stand in runs of `run` elements; whole pages are one run.
      const run = kind === "keys" ? pageRows * 4 : pageRows * this.#shape.headDim;
      const used = count === pageRows ? packed.length : (run / pageRows) * count;
      const step = count === pageRows ? packed.length : run;
      for (let at = 0; at < packed.length; at += step) {
        const bytes = packed.BYTES_PER_ELEMENT;
        queue.writeBuffer(buffer, offset + at * bytes, packed, at, used);
      }
    }
  }

  #pack(kind: Kind, values: Float32Array, count: number) {
    const elements = this.#shape.kvHeadCount * pageRows * this.#shape.headDim;
    const page = this.bits === 32 ? new Float32Array(elements) : new Uint16Array(elements);
    let from = 0;
    for (let row = 0; row < count; row++) {
      this.#eachVector(kind, row, (at) => {
        for (let i = 0; i < 4; i++) {
          const value = values[from++]!;
          page[at + i] = this.bits === 32 ? value : f16FromF32(value);
        }
      });
    }
    return page;
  }

  /** Where the vectors of four of a page's row begin, in order of head and dim. */
  #eachVector(kind: Kind, row: number, visit: (at: number) => void): void {
    const { kvHeadCount, headDim } = this.#shape;
    const step = kind === "keys" ? 4 * pageRows : 4;
    for (let head = 0; head < kvHeadCount; head++) {
      const first = head * pageRows * headDim + row * (kind === "keys" ? 4 : headDim);
      for (let i = 0; i < headDim / 4; i++) visit(first + i * step);
    }
  }
}
