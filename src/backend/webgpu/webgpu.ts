import { type BackendLostError, invariant } from "../../errors.ts";
import type { PageId, SlotId } from "../../ids.ts";
import { drawPosition, type Plan, segmentOf, validatePlan } from "../../model/plan.ts";
import { derivedSizes, type ModelShape } from "../../model/shape.ts";
import { concat } from "../arrays.ts";
import type { Backend, BackendInfo, PassHandle, PassResult, Snapshot } from "../backend.ts";
import { orderedOrNot } from "../draw-candidates.ts";
import { checkSnapshot } from "../snapshot.ts";
import { type KeptWindow, OpenWindows } from "../windows.ts";
import { blockSizes, chooseCut } from "./attention-cut.ts";
import { buildProgram } from "./build-program.ts";
import { type DeviceGuard, type OpenDevice, openDevice } from "./device.ts";
import { DeviceMemory, RefusedError } from "./device-memory.ts";
import { checkFit, roomOf, wasRefused } from "./fit.ts";
import { likelyNext } from "./likely-next.ts";
import { encodeKeeps, encodePass, type HistoryTurns } from "./pass.ts";
import { PassCommands } from "./pass-commands.ts";
import { Pipelines } from "./pipelines.ts";
import { type Places, placeAll } from "./places.ts";
import type { GpuPlatform } from "./platform.ts";
import { type PassCounts, type Program, type ProgramOptions, plainCounts } from "./program.ts";
import type { Arithmetic } from "./projection-layout.ts";
import { Readback } from "./readback.ts";
import { arithmeticFor, arithmeticText, checkKv, checkShape, isSoftware } from "./support.ts";
import { selectedOf, topOf, topOfPlan } from "./topk.ts";

export interface WebgpuOptions extends Omit<ProgramOptions, "arithmetic"> {
  readonly platform: GpuPlatform;
  /** What projections multiply; "auto" takes f16 where the GPU has a matrix unit for it. */
  readonly activations?: "auto" | Arithmetic;
  /** Part of an adapter's name; null takes the first. */
  readonly adapter: string | null;
}

/**
 * WebGPU: a round is one pass of dispatches in few submits; what comes back is the drawn ids, or the logits rows
 * that a draw needs. One arithmetic class: the contracts stand in `kernels/`.
 */
export class WebgpuBackend implements Backend {
  readonly info: BackendInfo;
  readonly lost: Promise<BackendLostError>;
  readonly #device: GPUDevice;
  readonly #guard: DeviceGuard;
  readonly #memory: DeviceMemory;
  readonly #shape: ModelShape;
  readonly #places: Places;
  readonly #commands: PassCommands;
  readonly #keepCommands: PassCommands;
  readonly #readback: Readback;
  readonly #results = new Map<PassHandle, Promise<PassResult>>();
  /** Slots whose kept logits row is valid. */
  readonly #kept = new Set<SlotId>();
  readonly #windows = new OpenWindows();
  /** Windows to commit with the next submit. */
  #keeps: KeptWindow[] = [];
  readonly #turns: HistoryTurns;
  /** Rows a block that attention has kernels for. */
  readonly #blockSizes: readonly number[];
  /** The latest pass, until what may follow it is prepared. */
  #latest: Plan | null = null;
  #passes = 0;

  private constructor(
    options: ProgramOptions,
    open: OpenDevice,
    memory: DeviceMemory,
    places: Places,
    program: Program,
  ) {
    const { weights, slots, pages, rowsMax, drawsMax } = options;
    this.#device = open.device;
    this.#guard = open.guard;
    this.#memory = memory;
    this.#shape = weights.shape;
    this.#places = places;
    this.#turns = new Uint8Array(slots);
    this.#blockSizes = blockSizes(weights.shape, isSoftware(open.device));
    this.#commands = new PassCommands(program.pass, open.device);
    this.#keepCommands = new PassCommands(program.keep, open.device);
    this.#readback = new Readback(open, memory);
    this.lost = open.guard.lost;
    const { stateBytes, kvBytes, workspaceBytes } = places.memory;
    const weightBytes = memory.bytes - stateBytes - kvBytes - workspaceBytes;
    this.info = {
      name: "webgpu",
      device: open.description,
      arithmetic: `${arithmeticText(options, open)}; ${open.identity}`,
      activations: options.arithmetic,
      ...(options.kv === "f16" && { kv: options.kv }),
      shape: weights.shape,
      slots,
      pages,
      rowsMax,
      drawsMax,
      memory: { weightBytes, stateBytes, kvBytes, workspaceBytes },
    };
  }

  /** @throws BackendError, MemoryError; everything taken is freed then */
  static async open(asked: WebgpuOptions): Promise<WebgpuBackend> {
    checkShape(asked.weights.shape);
    const open = await openDevice(asked.platform, asked.adapter);
    try {
      const arithmetic = arithmeticFor(asked.activations ?? "auto", open);
      checkKv(asked.kv ?? "f32", open);
      return await WebgpuBackend.#openOn(open, { ...asked, arithmetic });
    } catch (error) {
      const cause = await open.guard.explain(error);
      open.device.destroy();
      throw cause;
    }
  }

  static async #openOn(open: OpenDevice, options: ProgramOptions): Promise<WebgpuBackend> {
    const { device, guard } = open;
    const memory = new DeviceMemory(open);
    try {
      const most = options.memoryBytesMax ?? Number.POSITIVE_INFINITY;
      await checkFit(options, roomOf(device.limits, most));
      const places = await placeAll(memory, options);
      const pipelines = new Pipelines(device);
      const program = await buildProgram(device, memory, pipelines, options, places);
      // A lost device pretends that all of this went well.
      await device.queue.onSubmittedWorkDone();
      guard.check();
      return new WebgpuBackend(options, open, memory, places, program);
    } catch (error) {
      const room = roomOf(device.limits, memory.bytes);
      memory.free();
      throw error instanceof RefusedError ? await wasRefused(options, room) : error;
    }
  }

  /** Buffers on the device that are not freed yet. */
  get liveBuffers(): number {
    return this.#memory.live;
  }

  /** How many dispatches a pass of one stream takes. */
  dispatches(rows: number, draws: number): number {
    return this.#commands.dispatches(plainCounts(rows, draws, 1));
  }

  open(slot: SlotId): void {
    this.#guard.check();
    this.#kept.delete(slot);
    this.#windows.drop(slot);
    const { stateFloats, historyFloats } = derivedSizes(this.#shape);
    this.#commit();
    const encoder = this.#device.createCommandEncoder();
    for (const state of this.#places.states) {
      encoder.clearBuffer(state, 4 * slot * stateFloats, 4 * stateFloats);
    }
    for (const history of this.#places.histories) {
      encoder.clearBuffer(history, 8 * slot * historyFloats, 8 * historyFloats);
    }
    this.#device.queue.submit([encoder.finish()]);
  }

  prefill(plan: Plan): PassHandle {
    return this.verify(plan);
  }

  verify(plan: Plan): PassHandle {
    this.#guard.check();
    validatePlan(plan, { ...this.info, vocabSize: this.#shape.vocabSize });
    const handle = (this.#passes + 1) as PassHandle;
    this.#windows.begin(handle, plan);
    this.#passes = handle;
    this.#commit();
    this.#submit(plan);
    const result = this.#resultOf(plan);
    // A pass that nobody reads may fail: the process must not end by it.
    result.catch(() => {});
    this.#results.set(handle, result);
    this.#latest = plan;
    return handle;
  }

  /** Done before whatever comes next. */
  keep(handle: PassHandle, rows: readonly number[]): void {
    this.#guard.check();
    const kept = this.#windows.close(handle, rows);
    for (const { slot } of kept) this.#kept.delete(slot);
    this.#keeps.push(...kept);
  }

  async read(handle: PassHandle): Promise<PassResult> {
    const result = this.#results.get(handle);
    invariant(result !== undefined, `pass ${handle} was never given or was read before`);
    // The GPU has all that it was given, and the host nothing to do but wait.
    this.#prepareNext();
    this.#results.delete(handle);
    return await result;
  }

  async save(slot: SlotId, pages: readonly PageId[], rows: number): Promise<Snapshot> {
    this.#guard.check();
    this.#windows.refuse(slot);
    const sizes = derivedSizes(this.#shape);
    const { states, histories, keys, values, kv, keptLogits } = this.#places;
    const { vocabSize } = this.#shape;
    const part = (buffers: readonly GPUBuffer[], index: number, floats: number) =>
      buffers.map((buffer) => ({ buffer, offset: 4 * index * floats, bytes: 4 * floats }));
    const kept = { buffer: keptLogits, offset: 4 * slot * vocabSize, bytes: 4 * vocabSize };
    const keeps = this.#kept.has(slot);
    this.#commit();
    const parts = await this.#readback.bring([
      ...part(states, slot, sizes.stateFloats),
      ...part(histories, this.#history(slot), sizes.historyFloats),
      ...(keeps ? [kept] : []),
      ...[...keys, ...values].flatMap((buffer) => kv.ranges(buffer, pages, rows)),
    ]);
    const state = concat(parts.splice(0, states.length));
    const history = concat(parts.splice(0, histories.length));
    const logits = keeps ? parts.shift()! : null;
    const half = parts.length / 2;
    return {
      rows,
      state,
      history,
      keys: this.#fromPages("keys", parts.slice(0, half), rows),
      values: this.#fromPages("values", parts.slice(half), rows),
      logits,
    };
  }

  restore(slot: SlotId, pages: readonly PageId[], snapshot: Snapshot): void {
    this.#guard.check();
    this.#windows.refuse(slot);
    checkSnapshot(this.info, pages, snapshot);
    this.#commit();
    const { states, histories, keptLogits } = this.#places;
    const { vocabSize } = this.#shape;
    const write = (buffers: readonly GPUBuffer[], index: number, all: Float32Array) => {
      const floats = all.length / Math.max(1, buffers.length);
      buffers.forEach((buffer, layer) => {
        const part = all.slice(layer * floats, (layer + 1) * floats);
        this.#device.queue.writeBuffer(buffer, 4 * index * floats, part);
      });
    };
    write(states, slot, snapshot.state);
    write(histories, this.#history(slot), snapshot.history);
    this.#kept.delete(slot);
    if (snapshot.logits) {
      this.#kept.add(slot);
      const row = Float32Array.from(snapshot.logits);
      this.#device.queue.writeBuffer(keptLogits, 4 * slot * vocabSize, row);
    }
    this.#toPages("keys", snapshot.keys, pages, snapshot.rows);
    this.#toPages("values", snapshot.values, pages, snapshot.rows);
  }

  release(slot: SlotId): void {
    this.#kept.delete(slot);
    this.#windows.drop(slot);
  }

  /** Waits for what is in flight: a map that is pending when Dawn goes crashes the process. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.allSettled(this.#results.values());
    this.#results.clear();
    await this.#readback.drain();
    this.#memory.free();
    this.#device.destroy();
  }

  /** Which of the conv histories is a slot's latest. */
  #history(slot: SlotId): number {
    return 2 * slot + this.#turns[slot]!;
  }

  /** Commits the windows that wait for it, in submits of their own: a refused one is a lost device. */
  #commit(): void {
    if (this.#keeps.length === 0) return;
    const words = encodeKeeps(this.#keeps, this.#turns);
    this.#device.queue.writeBuffer(this.#places.keeps, 0, words);
    this.#keepCommands.submit(plainCounts(0, 0, this.#keeps.length));
    for (const { slot } of this.#keeps) this.#turns[slot]! ^= 1;
    this.#keeps = [];
  }

  #submit(plan: Plan): void {
    const counts = this.#countsOf(plan);
    const words = encodePass(plan, this.#shape, this.#turns, counts.attention);
    this.#device.queue.writeBuffer(this.#places.pass, 0, words);
    this.#commands.submit(counts);
    this.#keepLogits(plan);
    for (const { nextSlot, window } of plan.segments) if (!window) this.#turns[nextSlot]! ^= 1;
  }

  #countsOf(plan: Plan): PassCounts {
    return {
      rows: plan.ids.length,
      draws: plan.draws.length,
      segments: plan.segments.length,
      top: topOfPlan(plan),
      attention: chooseCut(plan, this.#shape, this.#blockSizes, this.#places.partialRows),
    };
  }

  /** Encodes the keep and the round that are likely to follow the latest pass. */
  #prepareNext(): void {
    const plan = this.#latest;
    if (!plan) return;
    this.#latest = null;
    const windows = plan.segments.filter(({ window }) => window).length;
    if (windows > 0) this.#keepCommands.prepare(plainCounts(0, 0, windows));
    for (const next of likelyNext(plan)) this.#commands.prepare(this.#countsOf(next));
  }

  #keepLogits(plan: Plan): void {
    const { arrays, keptLogits } = this.#places;
    const { buffer, stride } = arrays.rows.get("logits")!;
    const bytes = 4 * this.#shape.vocabSize;
    // A state that moves on leaves the row that it kept behind; a window's moves at its keep.
    for (const { nextSlot, window } of plan.segments) if (!window) this.#kept.delete(nextSlot);
    if (!plan.draws.some((draw) => draw.keepLogits)) return;
    const encoder = this.#device.createCommandEncoder();
    plan.draws.forEach((draw, index) => {
      if (!draw.keepLogits) return;
      const { nextSlot } = segmentOf(plan, draw.row);
      encoder.copyBufferToBuffer(buffer, 4 * index * stride, keptLogits, nextSlot * bytes, bytes);
      this.#kept.add(nextSlot);
    });
    this.#device.queue.submit([encoder.finish()]);
  }

  async #resultOf(plan: Plan): Promise<PassResult> {
    const { arrays, results, taps } = this.#places;
    const logits = arrays.rows.get("logits")!;
    const { vocabSize, hiddenSize } = this.#shape;
    const wide = plan.draws.flatMap((draw, index) => (topOf(draw.candidates) > 0 ? [] : [index]));
    const top = topOfPlan(plan);
    const resultBytes = top === 0 ? 0 : 8 * (top + 1) * plan.draws.length;
    const parts = await this.#readback.bring([
      { buffer: results, offset: 0, bytes: resultBytes },
      ...wide.map((index) => ({
        buffer: logits.buffer,
        offset: 4 * index * logits.stride,
        bytes: 4 * vocabSize,
      })),
      ...taps.map((buffer) => ({ buffer, offset: 0, bytes: 4 * plan.ids.length * hiddenSize })),
    ]);
    const selected = parts[0]!;
    return {
      draws: plan.draws.map((draw, index) => {
        const position = drawPosition(plan, draw.row);
        const row = wide.indexOf(index);
        if (row >= 0) return orderedOrNot(parts[1 + row]!, draw.candidates, position);
        const count = Math.min(draw.candidates, vocabSize);
        const record = selected.subarray(2 * (top + 1) * index, 2 * (top + 1) * (index + 1));
        return selectedOf(record, count, position);
      }),
      taps: parts.slice(1 + wide.length),
    };
  }

  /** Pages of all layers, one layer after the other → [layer, row, kv head, dim]. */
  #fromPages(kind: "keys" | "values", parts: readonly Float32Array[], rows: number): Float32Array {
    const { kv, keys } = this.#places;
    const floats = rows * derivedSizes(this.#shape).kvDim;
    const out = new Float32Array(keys.length * floats);
    const pagesEach = parts.length / Math.max(1, keys.length);
    keys.forEach((_, layer) => {
      const own = parts.slice(layer * pagesEach, (layer + 1) * pagesEach);
      kv.unpack(kind, own, rows, out.subarray(layer * floats, (layer + 1) * floats));
    });
    return out;
  }

  #toPages(kind: "keys" | "values", all: Float32Array, pages: readonly PageId[], rows: number) {
    const floats = rows * derivedSizes(this.#shape).kvDim;
    this.#places[kind].forEach((buffer, layer) => {
      const own = all.subarray(layer * floats, (layer + 1) * floats);
      this.#places.kv.write(this.#device.queue, buffer, kind, pages, rows, own);
    });
  }
}
