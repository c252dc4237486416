import { type BackendLostError, invariant } from "../../errors.ts";
import { type PageId, type SlotId, slotId } from "../../ids.ts";
import { type Plan, segmentOf, validatePlan } from "../../model/plan.ts";
import { type Rotation, rotationOf } from "../../model/rope.ts";
import type { ModelShape } from "../../model/shape.ts";
import type {
  Backend,
  BackendInfo,
  HeldState,
  PassHandle,
  PassResult,
  Snapshot,
} from "../backend.ts";
import { checkDraft, checkExtend } from "../draft-plans.ts";
import { checkSnapshot } from "../snapshot.ts";
import { isPrefix, type KeptWindow, OpenWindows } from "../windows.ts";
import { blockSizes, chooseCut } from "./attention-cut.ts";
import { buildProgram } from "./build-program.ts";
import { type DeviceGuard, type OpenDevice, openDevice } from "./device.ts";
import { DeviceMemory, RefusedError } from "./device-memory.ts";
import { Drafting } from "./drafting.ts";
import { checkFit, roomOf, wasRefused } from "./fit.ts";
import { HeldBuffers } from "./held-buffers.ts";
import { likelyNext } from "./likely-next.ts";
import { encodeKeeps, encodePass, type HistoryTurns } from "./pass.ts";
import { PassCommands } from "./pass-commands.ts";
import { Pipelines } from "./pipelines.ts";
import { type Places, placeAll } from "./places.ts";
import type { GpuPlatform } from "./platform.ts";
import { type PassCounts, type Program, type ProgramOptions, plainCounts } from "./program.ts";
import { headRowsOf } from "./program-steps.ts";
import type { Arithmetic } from "./projection-layout.ts";
import { type Range, Readback } from "./readback.ts";
import { Results } from "./results.ts";
import { SlotCopies } from "./slot-copies.ts";
import {
  arithmeticFor,
  arithmeticText,
  checkDrafter,
  checkKv,
  checkShape,
  isSoftware,
} from "./support.ts";
import { topOfPlan } from "./topk.ts";
import { scansOf } from "./trees.ts";

export interface WebgpuOptions extends Omit<ProgramOptions, "arithmetic"> {
  readonly platform: GpuPlatform;
  /** What projections multiply; "auto" takes f16 where the GPU has a matrix unit for it. */
  readonly activations?: "auto" | Arithmetic;
  /** An adapter's place in the list, or part of its name; null takes the first. */
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
  /** Null without a drafter. */
  readonly #drafting: Drafting | null;
  readonly #headRows: number;
  readonly #readback: Readback;
  readonly #copies: SlotCopies;
  readonly #held: HeldBuffers;
  readonly #results: Results;
  readonly #given = new Map<PassHandle, Promise<PassResult>>();
  /** Slots whose kept logits row is valid. */
  readonly #kept = new Set<SlotId>();
  readonly #windows = new OpenWindows();
  /** Windows to commit with the next submit. */
  #keeps: KeptWindow[] = [];
  readonly #turns: HistoryTurns;
  readonly #rotation: Rotation;
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
    const drafter = options.drafter?.weights.shape ?? null;
    const { device } = open;
    this.#device = device;
    this.#guard = open.guard;
    this.#memory = memory;
    this.#shape = weights.shape;
    this.#places = places;
    this.#turns = new Uint8Array(slots);
    this.#rotation = rotationOf(weights.shape);
    this.#blockSizes = blockSizes(weights.shape, isSoftware(device));
    this.#commands = new PassCommands(program.pass, device);
    this.#keepCommands = new PassCommands(program.keep, device);
    this.#drafting = drafter && new Drafting(device, places.drafter!, program, drafter, options);
    this.#headRows = headRowsOf(options);
    this.#readback = new Readback(open, memory);
    this.#copies = new SlotCopies(device, this.#readback, places, weights.shape);
    // Every slot's parts are as large as the first one's.
    const partBytes = this.#stateOf(slotId(0)).map(({ bytes }) => bytes);
    this.#held = new HeldBuffers(open, memory, partBytes);
    this.#results = new Results(this.#readback, places);
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
      drafter,
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
    if (asked.drafter) checkDrafter(asked.drafter.weights.shape, asked.weights.shape);
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
    this.#commit();
    this.#copies.clear(slot);
  }

  prefill(plan: Plan): PassHandle {
    return this.verify(plan);
  }

  verify(plan: Plan): PassHandle {
    this.#guard.check();
    validatePlan(plan, { ...this.info, vocabSize: this.#shape.vocabSize });
    const handle = this.#begin(plan);
    this.#submit(plan);
    this.#latest = plan;
    return this.#give(handle, this.#results.ofPass(plan, this.#shape));
  }

  /** Done before whatever comes next. */
  keep(handle: PassHandle, paths: readonly (readonly number[])[]): void {
    this.#guard.check();
    const kept = this.#windows.close(handle, paths);
    for (const { slot, draw } of kept) {
      if (draw === null) this.#kept.delete(slot);
      else this.#kept.add(slot);
    }
    this.#keeps.push(...kept);
  }

  extend(plan: Plan): void {
    this.#guard.check();
    checkExtend(this.info, plan);
    this.#begin(plan);
    this.#drafting!.extend(plan);
  }

  draft(plan: Plan): PassHandle {
    this.#guard.check();
    checkDraft(this.info, plan);
    const handle = this.#begin(plan);
    this.#drafting!.draft(plan);
    const { drafter } = this.info;
    return this.#give(handle, this.#results.ofDraft(plan, this.#headRows, drafter!));
  }

  async read(handle: PassHandle): Promise<PassResult> {
    const result = this.#given.get(handle);
    invariant(result !== undefined, `pass ${handle} was never given or was read before`);
    // The GPU has all that it was given, and the host nothing to do but wait.
    this.#prepareNext();
    this.#given.delete(handle);
    return await result;
  }

  async hold(slot: SlotId): Promise<HeldState> {
    this.#guard.check();
    this.#windows.refuse(slot);
    this.#commit();
    return await this.#held.hold(this.#stateOf(slot));
  }

  resume(slot: SlotId, held: HeldState): void {
    this.#guard.check();
    this.#windows.refuse(slot);
    this.#commit();
    this.#held.resume(held, this.#stateOf(slot));
    this.#kept.delete(slot);
  }

  copyPage(from: PageId, to: PageId): void {
    this.#guard.check();
    this.#commit();
    this.#copies.copyPage(from, to);
  }

  async save(
    source: SlotId | HeldState,
    pages: readonly PageId[],
    rows: number,
  ): Promise<Snapshot> {
    this.#guard.check();
    if (typeof source === "number") this.#windows.refuse(source);
    this.#commit();
    if (typeof source !== "number") {
      return await this.#copies.save(this.#held.partsOf(source), null, pages, rows);
    }
    const kept = this.#kept.has(source) ? source : null;
    return await this.#copies.save(this.#stateOf(source), kept, pages, rows);
  }

  restore(slot: SlotId, pages: readonly PageId[], snapshot: Snapshot): void {
    this.#guard.check();
    this.#windows.refuse(slot);
    checkSnapshot(this.info, pages, snapshot);
    this.#commit();
    this.#kept.delete(slot);
    if (snapshot.logits) this.#kept.add(slot);
    this.#copies.restore(slot, this.#history(slot), pages, snapshot);
  }

  release(slot: SlotId): void {
    this.#kept.delete(slot);
    this.#windows.drop(slot);
  }

  /** Waits for what is in flight: a map that is pending when Dawn goes crashes the process. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.allSettled(this.#given.values());
    this.#given.clear();
    await Promise.all([this.#readback.drain(), this.#held.drain()]);
    this.#memory.free();
    this.#device.destroy();
  }

  /** Which of the conv histories is a slot's latest. */
  #history(slot: SlotId): number {
    return 2 * slot + this.#turns[slot]!;
  }

  /** Where a slot's state and history lie. */
  #stateOf(slot: SlotId): Range[] {
    return this.#copies.stateOf(slot, this.#history(slot));
  }

  /** The handle of a pass, before which all that was kept is committed. */
  #begin(plan: Plan): PassHandle {
    const handle = (this.#passes + 1) as PassHandle;
    this.#windows.begin(handle, plan);
    this.#passes = handle;
    this.#commit();
    return handle;
  }

  #give(handle: PassHandle, result: Promise<PassResult>): PassHandle {
    // A pass that nobody reads may fail: the process must not end by it.
    result.catch(() => {});
    this.#given.set(handle, result);
    return handle;
  }

  /** Commits the windows that wait for it, in submits of their own: a refused one is a lost device. */
  #commit(): void {
    const keeps = this.#keeps;
    if (keeps.length === 0) return;
    this.#keeps = [];
    this.#device.queue.writeBuffer(this.#places.keeps, 0, encodeKeeps(keeps, this.#turns));
    const moves = keeps.some(({ path }) => !isPrefix(path));
    this.#keepCommands.submit({ ...plainCounts(0, 0, keeps.length), moves });
    this.#copies.keepLogits(keeps);
    for (const { slot } of keeps) this.#turns[slot]! ^= 1;
  }

  #submit(plan: Plan): void {
    const counts = this.#countsOf(plan);
    const words = encodePass(plan, this.#rotation, this.#turns, counts.attention);
    this.#device.queue.writeBuffer(this.#places.pass, 0, words);
    this.#commands.submit(counts);
    this.#keepLogits(plan);
    for (const { nextSlot, window } of plan.segments) if (!window) this.#turns[nextSlot]! ^= 1;
  }

  #countsOf(plan: Plan): PassCounts {
    return {
      ...plainCounts(plan.ids.length, plan.draws.length, plan.segments.length),
      top: topOfPlan(plan),
      attention: chooseCut(plan, this.#shape, this.#blockSizes, this.#places.partialRows),
      scans: scansOf(plan).length,
    };
  }

  /** Encodes what is likely to follow the latest pass: a keep, the drafter's passes, the next round. */
  #prepareNext(): void {
    const plan = this.#latest;
    if (!plan) return;
    this.#latest = null;
    const windows = plan.segments.filter(({ window }) => window).length;
    if (windows > 0) this.#keepCommands.prepare(plainCounts(0, 0, windows));
    const rounds = likelyNext(plan);
    if (rounds.length > 0) this.#drafting?.prepare(plan);
    for (const next of rounds) this.#commands.prepare(this.#countsOf(next));
  }

  /** A window's rows wait for its keep. */
  #keepLogits(plan: Plan): void {
    // A state that moves on leaves the row that it kept behind; a window's moves at its keep.
    for (const { nextSlot, window } of plan.segments) if (!window) this.#kept.delete(nextSlot);
    const rows = plan.draws.flatMap(({ row, keepLogits }, draw) => {
      const { nextSlot: slot, window } = segmentOf(plan, row);
      return keepLogits && !window ? [{ slot, draw }] : [];
    });
    for (const { slot } of rows) this.#kept.add(slot);
    this.#copies.keepLogits(rows);
  }
}
