import { BackendError, invariant, NonFiniteLogitsError } from "../../errors.ts";
import type { PageId, SlotId } from "../../ids.ts";
import { pageRows } from "../../limits.ts";
import { drawPosition, type Plan, validatePlan } from "../../model/plan.ts";
import { derivedSizes, type ModelShape } from "../../model/shape.ts";
import { concat } from "../arrays.ts";
import type { Backend, BackendInfo, PassHandle, PassResult, Snapshot } from "../backend.ts";
import type { Candidates } from "../candidates.ts";
import { orderedOrNot } from "../draw-candidates.ts";
import { checkSnapshot } from "../snapshot.ts";
import { DeviceMemory, type OpenDevice, openDevice } from "./device.ts";
import { encodePass } from "./pass.ts";
import { Pipelines } from "./pipelines.ts";
import { type Places, placeAll } from "./places.ts";
import type { GpuPlatform } from "./platform.ts";
import { type Instruction, ProgramBuilder, type ProgramOptions } from "./program.ts";
import { Readback } from "./readback.ts";
import { checkShape } from "./support.ts";

export interface WebgpuOptions extends ProgramOptions {
  readonly platform: GpuPlatform;
  /** Part of an adapter's name; null takes the first. */
  readonly adapter: string | null;
}

/**
 * WebGPU: one compute pass and one submit a round; what comes back is the drawn ids, or the logits rows
 * that a draw needs. One arithmetic class: the contracts stand in `kernels/`.
 */
export class WebgpuBackend implements Backend {
  readonly info: BackendInfo;
  readonly lost: Promise<BackendError>;
  readonly #device: GPUDevice;
  readonly #memory: DeviceMemory;
  readonly #shape: ModelShape;
  readonly #places: Places;
  readonly #program: readonly Instruction[];
  readonly #readback: Readback;
  readonly #results = new Map<PassHandle, Promise<PassResult>>();
  /** Slots whose kept logits row is valid. */
  readonly #kept = new Set<SlotId>();
  #passes = 0;

  private constructor(
    options: WebgpuOptions,
    open: OpenDevice,
    memory: DeviceMemory,
    places: Places,
    program: readonly Instruction[],
  ) {
    const { weights, slots, pages, rowsMax, drawsMax } = options;
    this.#device = open.device;
    this.#memory = memory;
    this.#shape = weights.shape;
    this.#places = places;
    this.#program = program;
    this.#readback = new Readback(open.device);
    this.lost = open.device.lost.then(
      ({ reason, message }) => new BackendError(`The GPU device was lost (${reason}): ${message}`),
    );
    const { stateBytes, kvBytes, workspaceBytes } = places.memory;
    const weightBytes = memory.bytes - stateBytes - kvBytes - workspaceBytes;
    this.info = {
      name: "webgpu",
      device: open.description,
      arithmetic: `f32; ${open.identity}`,
      shape: weights.shape,
      slots,
      pages,
      rowsMax,
      drawsMax,
      memory: { weightBytes, stateBytes, kvBytes, workspaceBytes },
    };
  }

  /** @throws BackendError, MemoryError; everything taken is freed then */
  static async open(options: WebgpuOptions): Promise<WebgpuBackend> {
    checkShape(options.weights.shape);
    const open = await openDevice(options.platform, options.adapter);
    const memory = new DeviceMemory(open.device);
    try {
      const places = await placeAll(memory, options);
      const pipelines = new Pipelines(open.device);
      const program = await ProgramBuilder.build(open.device, memory, pipelines, options, places);
      return new WebgpuBackend(options, open, memory, places, program);
    } catch (error) {
      memory.free();
      open.device.destroy();
      throw error;
    }
  }

  /** Buffers on the device that are not freed yet. */
  get liveBuffers(): number {
    return this.#memory.live;
  }

  open(slot: SlotId): void {
    this.#kept.delete(slot);
    const { stateFloats, historyFloats } = derivedSizes(this.#shape);
    const encoder = this.#device.createCommandEncoder();
    for (const state of this.#places.states) {
      encoder.clearBuffer(state, 4 * slot * stateFloats, 4 * stateFloats);
    }
    for (const history of this.#places.histories) {
      encoder.clearBuffer(history, 4 * slot * historyFloats, 4 * historyFloats);
    }
    this.#device.queue.submit([encoder.finish()]);
  }

  prefill(plan: Plan): PassHandle {
    return this.verify(plan);
  }

  verify(plan: Plan): PassHandle {
    validatePlan(plan, { ...this.info, vocabSize: this.#shape.vocabSize });
    this.#device.queue.writeBuffer(this.#places.pass, 0, encodePass(plan, this.#shape));
    const encoder = this.#device.createCommandEncoder();
    this.#encode(encoder, plan);
    const handle = ++this.#passes as PassHandle;
    this.#results.set(handle, this.#submit(encoder, plan));
    return handle;
  }

  async read(handle: PassHandle): Promise<PassResult> {
    const result = this.#results.get(handle);
    invariant(result !== undefined, `pass ${handle} was never given or was read before`);
    this.#results.delete(handle);
    return await result;
  }

  async save(slot: SlotId, pages: readonly PageId[], rows: number): Promise<Snapshot> {
    const sizes = derivedSizes(this.#shape);
    const { states, histories, keys, values, keptLogits } = this.#places;
    const { vocabSize } = this.#shape;
    const slotOf = (buffers: readonly GPUBuffer[], floats: number) =>
      buffers.map((buffer) => ({ buffer, offset: 4 * slot * floats, bytes: 4 * floats }));
    const kept = { buffer: keptLogits, offset: 4 * slot * vocabSize, bytes: 4 * vocabSize };
    const keeps = this.#kept.has(slot);
    const encoder = this.#device.createCommandEncoder();
    const parts = await this.#readback.submit(encoder, [
      ...slotOf(states, sizes.stateFloats),
      ...slotOf(histories, sizes.historyFloats),
      ...(keeps ? [kept] : []),
      ...this.#pageRanges(keys, pages, rows),
      ...this.#pageRanges(values, pages, rows),
    ]);
    const state = concat(parts.splice(0, states.length));
    const history = concat(parts.splice(0, histories.length));
    const logits = keeps ? parts.shift()! : null;
    const kv = parts.length / 2;
    return {
      rows,
      state,
      history,
      keys: this.#fromPages(parts.slice(0, kv), rows),
      values: this.#fromPages(parts.slice(kv), rows),
      logits,
    };
  }

  restore(slot: SlotId, pages: readonly PageId[], snapshot: Snapshot): void {
    checkSnapshot(this.info, pages, snapshot);
    const { states, histories, keys, values, keptLogits } = this.#places;
    const { vocabSize } = this.#shape;
    const write = (buffers: readonly GPUBuffer[], all: Float32Array) => {
      const floats = all.length / Math.max(1, buffers.length);
      buffers.forEach((buffer, layer) => {
        const part = all.slice(layer * floats, (layer + 1) * floats);
        this.#device.queue.writeBuffer(buffer, 4 * slot * floats, part);
      });
    };
    write(states, snapshot.state);
    write(histories, snapshot.history);
    this.#kept.delete(slot);
    if (snapshot.logits) {
      this.#kept.add(slot);
      const row = Float32Array.from(snapshot.logits);
      this.#device.queue.writeBuffer(keptLogits, 4 * slot * vocabSize, row);
    }
    this.#toPages(keys, snapshot.keys, pages, snapshot.rows);
    this.#toPages(values, snapshot.values, pages, snapshot.rows);
  }

  release(slot: SlotId): void {
    this.#kept.delete(slot);
  }

  /** Waits for what is in flight: a map that is pending when Dawn goes crashes the process. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.allSettled(this.#results.values());
    this.#results.clear();
    await this.#readback.drain();
    this.#memory.free();
    this.#device.destroy();
  }

  #encode(encoder: GPUCommandEncoder, plan: Plan): void {
    const counts = {
      rows: plan.ids.length,
      draws: plan.draws.length,
      segments: plan.segments.length,
    };
    const pass = encoder.beginComputePass();
    for (const { kernel, bindGroup, size } of this.#program) {
      const [x, y, z] = size(counts);
      if (x * y * z === 0) continue;
      invariant(Math.max(x, y, z) <= 65_535, `a dispatch of ${x} × ${y} × ${z} workgroups`);
      pass.setPipeline(kernel(counts).pipeline);
      pass.setBindGroup(0, bindGroup);
      pass.dispatchWorkgroups(x, y, z);
    }
    pass.end();
  }

  async #submit(encoder: GPUCommandEncoder, plan: Plan): Promise<PassResult> {
    const { rows, results, keptLogits, taps } = this.#places;
    const logits = rows.get("logits")!;
    const { vocabSize, hiddenSize } = this.#shape;
    // A state that moves on leaves the row that it kept behind.
    for (const { nextSlot } of plan.segments) this.#kept.delete(nextSlot);
    plan.draws.forEach((draw, index) => {
      if (!draw.keepLogits) return;
      const { nextSlot } = plan.segments.find((part) => draw.row < part.firstRow + part.rows)!;
      const from = 4 * index * logits.stride;
      encoder.copyBufferToBuffer(
        logits.buffer,
        from,
        keptLogits,
        4 * nextSlot * vocabSize,
        4 * vocabSize,
      );
      this.#kept.add(nextSlot);
    });
    const wide = plan.draws.flatMap((draw, index) => (draw.candidates === 1 ? [] : [index]));
    const parts = await this.#readback.submit(encoder, [
      { buffer: results, offset: 0, bytes: 16 * plan.draws.length },
      ...wide.map((index) => ({
        buffer: logits.buffer,
        offset: 4 * index * logits.stride,
        bytes: 4 * vocabSize,
      })),
      ...taps.map((buffer) => ({ buffer, offset: 0, bytes: 4 * plan.ids.length * hiddenSize })),
    ]);
    const best = parts[0]!;
    return {
      draws: plan.draws.map((draw, index) => {
        const position = drawPosition(plan, draw.row);
        const row = wide.indexOf(index);
        if (row >= 0) return orderedOrNot(parts[1 + row]!, draw.candidates, position);
        return bestOf(best, index, position);
      }),
      taps: parts.slice(1 + wide.length),
    };
  }

  /** The pages that hold [0, rows), whole. */
  #pageRanges(buffers: readonly GPUBuffer[], pages: readonly PageId[], rows: number) {
    const bytes = 4 * this.#pageFloats;
    const held = pages.slice(0, Math.ceil(rows / pageRows));
    return buffers.flatMap((buffer) =>
      held.map((page) => ({ buffer, offset: page * bytes, bytes })),
    );
  }

  get #pageFloats(): number {
    return this.#shape.kvHeadCount * pageRows * this.#shape.headDim;
  }

  /** Pages [layer, page][kv head, row, dim] → [layer, row, kv head, dim]. */
  #fromPages(parts: readonly Float32Array[], rows: number): Float32Array {
    const out = new Float32Array(this.#places.keys.length * rows * derivedSizes(this.#shape).kvDim);
    const pagesEach = Math.ceil(rows / pageRows);
    this.#eachVector(rows, (layer, row, inPage, at, width) => {
      const page = parts[layer * pagesEach + Math.floor(row / pageRows)]!;
      out.set(page.subarray(inPage, inPage + width), at);
    });
    return out;
  }

  #toPages(
    buffers: readonly GPUBuffer[],
    all: Float32Array,
    pages: readonly PageId[],
    rows: number,
  ): void {
    this.#eachVector(rows, (layer, row, inPage, at, width) => {
      const page = pages[Math.floor(row / pageRows)]!;
      const offset = 4 * (page * this.#pageFloats + inPage);
      this.#device.queue.writeBuffer(buffers[layer]!, offset, all.slice(at, at + width));
    });
  }

  #eachVector(
    rows: number,
    visit: (layer: number, row: number, inPage: number, at: number, width: number) => void,
  ): void {
    const { kvHeadCount, headDim } = this.#shape;
    for (let layer = 0; layer < this.#places.keys.length; layer++) {
      for (let row = 0; row < rows; row++) {
        for (let head = 0; head < kvHeadCount; head++) {
          const inPage = (head * pageRows + (row % pageRows)) * headDim;
          const at = ((layer * rows + row) * kvHeadCount + head) * headDim;
          visit(layer, row, inPage, at, headDim);
        }
      }
    }
  }
}

/** The argmax kernel's record of a draw. */
function bestOf(
  results: Float32Array,
  draw: number,
  position: number,
): Candidates | NonFiniteLogitsError {
  const words = new Uint32Array(results.buffer, results.byteOffset + 16 * draw, 4);
  if (words[2] === 0) return new NonFiniteLogitsError(position);
  return { ids: Int32Array.of(words[0]!), logits: results.slice(4 * draw + 1, 4 * draw + 2) };
}
