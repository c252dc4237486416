import { expect, test } from "vitest";
import { type PageId, pageId, slotId, type TokenId } from "../../ids.ts";
import { planPass, type SegmentRequest } from "../../model/plan.ts";
import { derivedSizes } from "../../model/shape.ts";
import { stateFingerprint } from "../../state/fingerprint.ts";
import type { PassHandle } from "../backend.ts";
import { firstRows } from "../windows.ts";
import { bytesStored, CountingGpu } from "./counting-gpu.cases.ts";
import { missingGpu, tinyWeights } from "./gpu.cases.ts";
import { nodeGpuPlatform } from "./platform-node.ts";
import { WebgpuBackend } from "./webgpu.ts";

const reason = await missingGpu();
const { shape } = tinyWeights;
const { linearLayers, stateFloats } = derivedSizes(shape);
/** A slot's, of all layers. */
const stateBytes = 4 * linearLayers * stateFloats;
const layersOnce = { dispatches: linearLayers, copies: 0, bytesStored: stateBytes };
const slots = 3;
const prompt: readonly TokenId[] = Array.from({ length: 60 }, (_, i) => (i * 53 + 11) % 300);
const pagesOf = (slot: number): PageId[] => [pageId(slot)];

const part = (
  slot: number,
  start: number,
  rows: number,
  changes: Partial<SegmentRequest> = {},
): SegmentRequest => ({
  ids: prompt.slice(start, start + rows),
  start,
  stateSlot: slotId(slot),
  nextSlot: slotId(slot),
  pages: pagesOf(slot),
  draw: "last",
  candidates: 1,
  ...changes,
});

/** What a pass did to the states of all linear layers, which lie in one buffer. */
interface Writes {
  /** Dispatches that may write them. */
  readonly dispatches: number;
  /** Copies, clears and writes to them. */
  readonly copies: number;
  readonly bytesStored: number;
  /** By slot. */
  readonly bytesChanged: readonly number[];
}

class Counted {
  readonly #gpu = new CountingGpu(nodeGpuPlatform);
  #backend: WebgpuBackend | null = null;
  #handle: PassHandle | null = null;

  async open(gdnPath: "inPlace" | "copy"): Promise<WebgpuBackend> {
    const sizes = { slots, pages: slots, rowsMax: 64, drawsMax: 4, taps: [] };
    const choice = { platform: this.#gpu, adapter: null, synthetic: false, gdnPath };
    this.#backend = await WebgpuBackend.open({ ...sizes, ...choice, weights: tinyWeights });
    for (let slot = 0; slot < slots; slot++) this.#backend.open(slotId(slot));
    return this.#backend;
  }

  /** Runs a pass. */
  pass(...segments: readonly SegmentRequest[]): Promise<Writes> {
    return this.#count(async (backend) => {
      this.#handle = backend.verify(planPass(segments));
      await backend.read(this.#handle);
    });
  }

  /** Commits the first rows of the window of the latest pass. */
  keep(rows: number): Promise<Writes> {
    return this.#count(async (backend) => {
      backend.keep(this.#handle!, [firstRows(rows)]);
      // A keep rides along with what is submitted next.
      await backend.save(slotId(slots - 1), pagesOf(slots - 1), 0);
    });
  }

  async #count(work: (backend: WebgpuBackend) => Promise<void>): Promise<Writes> {
    const before = await this.#states();
    this.#gpu.reset();
    await work(this.#backend!);
    const counts = this.#counts();
    const after = await this.#states();
    return { ...counts, bytesChanged: bytesChanged(before, after) };
  }

  get #buffer(): GPUBuffer {
    return this.#gpu.buffers.get("states from 0")!;
  }

  #counts() {
    const states = this.#buffer;
    const writing = this.#gpu.dispatches.filter(({ writable }) => writable.includes(states));
    return {
      dispatches: writing.length,
      copies: this.#gpu.written.filter((buffer) => buffer === states).length,
      bytesStored: writing.reduce((sum, dispatch) => sum + bytesStored(dispatch, "state"), 0),
    };
  }

  /** The words of every layer's states, read past the backend. */
  async #states(): Promise<Uint32Array> {
    const device = this.#gpu.device!;
    const { size } = this.#buffer;
    const usage = GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST;
    const staging = device.createBuffer({ size, usage });
    const encoder = device.createCommandEncoder();
    encoder.copyBufferToBuffer(this.#buffer, 0, staging, 0, size);
    device.queue.submit([encoder.finish()]);
    await staging.mapAsync(GPUMapMode.READ);
    const words = new Uint32Array(staging.getMappedRange().slice(0));
    staging.destroy();
    return words;
  }
}

/** By slot; a layer's slots stand side by side, then those that `copy` scans into. */
function bytesChanged(before: Uint32Array, after: Uint32Array): number[] {
  const changed = new Array<number>(slots).fill(0);
  const layerFloats = after.length / linearLayers;
  for (let at = 0; at < after.length; at++) {
    const slot = Math.floor((at % layerFloats) / stateFloats);
    if (slot < slots && before[at] !== after[at]) changed[slot]! += 4;
  }
  return changed;
}

const printOf = async (backend: WebgpuBackend, slot: number, pages: number, rows: number) =>
  stateFingerprint(await backend.save(slotId(slot), pagesOf(pages), rows));

if (reason !== null) {
  test.skip(`webgpu state writes: ${reason}`, () => {});
} else {
  test("a chain writes each word of its state once, in place, in one dispatch and no copy", {
    timeout: 240_000,
  }, async () => {
    const counted = new Counted();
    await using backend = await counted.open("inPlace");
    const once = layersOnce;
    // (a) plain decode
    for (let row = 0; row < 40; row++) {
      const writes = await counted.pass(part(0, row, 1));
      expect(writes).toEqual({ ...once, bytesChanged: [stateBytes, 0, 0] });
    }
    // (b) a prompt chunk
    const chunk = await counted.pass(part(1, 0, 40));
    expect(chunk).toEqual({ ...once, bytesChanged: [0, stateBytes, 0] });
    const decoded = await printOf(backend, 0, 0, 40);
    expect(await printOf(backend, 1, 1, 40)).toBe(decoded);
    // (c) a moved slot: the old state stays, the new one is written once
    backend.release(slotId(1));
    backend.open(slotId(1));
    await counted.pass(part(1, 0, 20));
    const move = await counted.pass(part(1, 20, 20, { nextSlot: slotId(2) }));
    expect(move).toEqual({ ...once, bytesChanged: [0, 0, stateBytes] });
    expect(await printOf(backend, 2, 1, 40)).toBe(decoded);
    // Two streams in a pass: each its own words.
    const both = await counted.pass(part(0, 40, 3), part(2, 40, 1, { pages: pagesOf(1) }));
    const bytes = { bytesStored: 2 * stateBytes, bytesChanged: [stateBytes, 0, stateBytes] };
    expect(both).toEqual({ ...once, ...bytes });
  });

  test("a window writes no state, and its keep what a chain writes", {
    timeout: 240_000,
  }, async () => {
    const counted = new Counted();
    await using backend = await counted.open("inPlace");
    await counted.pass(part(0, 0, 20));
    await counted.pass(part(1, 0, 24));
    const verified = await counted.pass(part(0, 20, 8, { window: true, draw: "none" }));
    expect(verified).toMatchObject({
      dispatches: linearLayers,
      copies: 0,
      bytesChanged: [0, 0, 0],
    });
    const kept = await counted.keep(4);
    // One dispatch for all layers.
    const once = { dispatches: 1, copies: 0, bytesStored: stateBytes };
    expect(kept).toEqual({ ...once, bytesChanged: [stateBytes, 0, 0] });
    expect(await printOf(backend, 0, 0, 24)).toBe(await printOf(backend, 1, 1, 24));
  });

  test("the scan that copies writes every word twice, and the bits are the same", {
    timeout: 240_000,
  }, async () => {
    const counted = new Counted();
    await using backend = await counted.open("copy");
    const writes = await counted.pass(part(0, 0, 40));
    const twice = { dispatches: 2 * linearLayers, copies: 0, bytesStored: 2 * stateBytes };
    expect(writes).toEqual({ ...twice, bytesChanged: [stateBytes, 0, 0] });
    const inPlace = new Counted();
    await using other = await inPlace.open("inPlace");
    await inPlace.pass(part(0, 0, 40));
    expect(await printOf(backend, 0, 0, 40)).toBe(await printOf(other, 0, 0, 40));
  });
}
