import { type BackendLostError, invariant } from "../../errors.ts";
import type { PageId, SlotId } from "../../ids.ts";
import { type Plan, validatePlan } from "../../model/plan.ts";
import { drafterRotation, type Rotation, rotationOf } from "../../model/rope.ts";
import { concat } from "../arrays.ts";
import type {
  Backend,
  BackendInfo,
  BackendOptions,
  HeldState,
  PassHandle,
  PassResult,
  Snapshot,
} from "../backend.ts";
import { checkDraft, checkExtend } from "../draft-plans.ts";
import { draftCandidates, drawCandidates, keepLogits } from "../draw-candidates.ts";
import { copyHeld, HeldStates, heldBytes, type SlotArrays, type StateArrays } from "../held.ts";
import { checkSnapshot } from "../snapshot.ts";
import { OpenWindows } from "../windows.ts";
import { type Arena, fillAll } from "./arena.ts";
import { checkFit, deviceText, placeBackend, type WasmChoice } from "./fit.ts";
import { PassWriter } from "./pass.ts";
import type { PassKind, Places, RowArray } from "./places.ts";
import type { WasmPlatform } from "./platform.ts";
import { ThreadPool } from "./pool.ts";
import { isWideFaster, probeKernels } from "./probe.ts";
import { SlotMemory } from "./slot-memory.ts";

export interface WasmOptions extends BackendOptions, WasmChoice {
  readonly platform: WasmPlatform;
  /** How integer products are added, for tests (kernels/dots.ts); absent: as is faster here. */
  readonly wide?: boolean;
}

/**
 * WebAssembly SIMD over threads. One arithmetic class serves prompts and decoding: a row's sums have
 * one order, whatever the pass holds (the contracts stand in `kernels/`).
 */
export class WasmBackend implements Backend {
  readonly info: BackendInfo;
  readonly lost: Promise<BackendLostError>;
  readonly #arena: Arena;
  readonly #places: Places;
  readonly #pool: ThreadPool;
  readonly #writer: PassWriter;
  readonly #memory: SlotMemory;
  readonly #rotation: Rotation;
  readonly #draftRotation: Rotation | null;
  /** How many tokens a draft may propose. */
  readonly #draftVocabulary: number;
  readonly #results = new Map<PassHandle, Promise<PassResult>>();
  readonly #keptLogits = new Map<SlotId, Float32Array>();
  readonly #windows = new OpenWindows();
  readonly #held: HeldStates<StateArrays>;
  #passes = 0;
  /** Everything that touches the memory, in order. */
  #tail: Promise<unknown> = Promise.resolve();
  /** Writes what is to run with the next pass: to wake threads for little takes longer than the little. */
  readonly #waiting = new Map<PassKind, () => void>();

  private constructor(
    options: WasmOptions,
    arena: Arena,
    places: Places,
    pool: ThreadPool,
    info: BackendInfo,
  ) {
    const { shape, drafter } = info;
    this.#arena = arena;
    this.#places = places;
    this.#pool = pool;
    this.#writer = new PassWriter(arena, places.pass);
    this.#memory = new SlotMemory(arena, places, shape);
    this.#held = new HeldStates(heldBytes(shape));
    this.#rotation = rotationOf(shape);
    this.#draftRotation = drafter && drafterRotation(drafter.rope, drafter.headDim);
    this.#draftVocabulary = options.drafter?.vocabulary ?? shape.vocabSize;
    this.info = info;
    this.lost = pool.lost;
  }

  static async open(options: WasmOptions): Promise<WasmBackend> {
    const { weights, platform, activations, onProgress } = options;
    const placed = placeBackend(options, options);
    const kernels = await probeKernels(platform);
    const { arena, arenas, far, places, program, memory } = placed;
    await checkFit(placed, options, options);
    await fillAll(arenas, onProgress);
    const setup = {
      module: kernels.module,
      program: program.at,
      instructions: program.count,
      counters: program.counters,
      pass: places.pass.blocks,
      wide: options.wide ?? (addsIntegers(options) && isWideFaster(kernels)),
    };
    const pool = await ThreadPool.start(platform, arena, setup, places.scratches, far);
    const simd = kernels.relaxed ? "relaxed SIMD" : "SIMD";
    const { slots, pages, rowsMax, drawsMax } = options;
    const info: BackendInfo = {
      name: "wasm",
      device: deviceText(options),
      arithmetic: `${simd}, ${kernels.fused ? "fused" : "unfused"} multiply-add, ${activations} activations`,
      activations,
      shape: weights.shape,
      drafter: options.drafter?.weights.shape ?? null,
      slots,
      pages,
      rowsMax,
      drawsMax,
      memory,
    };
    return new WasmBackend(options, arena, places, pool, info);
  }

  open(slot: SlotId): void {
    this.#windows.drop(slot);
    this.#settled(() => {
      this.#keptLogits.delete(slot);
      this.#memory.clear(slot);
    });
  }

  prefill(plan: Plan): PassHandle {
    return this.verify(plan);
  }

  verify(plan: Plan): PassHandle {
    const { shape } = this.info;
    validatePlan(plan, { ...this.info, vocabSize: shape.vocabSize });
    const handle = this.#begin(plan);
    return this.#give(handle, async () => {
      await this.#run(() => this.#writer.plan(plan, "target", this.#rotation));
      const logitsOf = (draw: number) => this.#logits(draw, shape.vocabSize);
      const draws = drawCandidates(plan, logitsOf, this.#keptLogits);
      const { taps } = this.#places;
      const count = plan.ids.length;
      const kept = taps.map((tap) => this.#rows(tap, count, shape.hiddenSize));
      return { draws, taps: kept, selector: null };
    });
  }

  keep(handle: PassHandle, paths: readonly (readonly number[])[]): void {
    // The caller's arrays may change before the next pass.
    const own = paths.map((path) => [...path]);
    const kept = this.#windows.close(handle, own);
    if (kept.length === 0) return;
    this.#queue(async () => {
      for (const { slot, draw } of kept) {
        const { vocabSize } = this.info.shape;
        const logits = draw === null ? null : this.#logits(draw, vocabSize).slice();
        keepLogits(this.#keptLogits, slot, logits);
      }
      await this.#defer("keep", () => this.#writer.keep(kept));
    });
  }

  extend(plan: Plan): void {
    checkExtend(this.info, plan);
    this.#begin(plan);
    const write = () => this.#writer.plan(plan, "context", this.#draftRotation!);
    this.#queue(() => this.#defer("context", write));
  }

  draft(plan: Plan): PassHandle {
    checkDraft(this.info, plan);
    const handle = this.#begin(plan);
    return this.#give(handle, async () => {
      await this.#run(() => this.#writer.plan(plan, "block", this.#draftRotation!));
      const draws = draftCandidates(plan, (draw) => this.#logits(draw, this.#draftVocabulary));
      const { buffers, widths } = this.#places;
      const selector = buffers.get("selector");
      return {
        draws,
        taps: [],
        selector: selector
          ? this.#rows(selector, plan.draws.length, widths.get("selector")!)
          : null,
      };
    });
  }

  async read(handle: PassHandle): Promise<PassResult> {
    const result = this.#results.get(handle);
    invariant(result !== undefined, `pass ${handle} was never given or was read before`);
    this.#results.delete(handle);
    return result;
  }

  async hold(slot: SlotId): Promise<HeldState> {
    this.#windows.refuse(slot);
    return this.#settled(() => this.#held.add((into) => this.#memory.readState(slot, into)));
  }

  resume(slot: SlotId, held: HeldState): void {
    this.#windows.refuse(slot);
    const state = this.#held.contentOf(held);
    this.#settled(() => {
      this.#keptLogits.delete(slot);
      this.#memory.writeState(slot, state);
    });
  }

  copyPage(from: PageId, to: PageId): void {
    this.#settled(() => this.#memory.copyPage(from, to));
  }

  async save(
    source: SlotId | HeldState,
    pages: readonly PageId[],
    rows: number,
  ): Promise<Snapshot> {
    const state = this.#stateOf(source);
    // The caller's array may change before this comes to be done.
    const own = [...pages];
    return this.#settled(() => ({ rows, ...state(), ...this.#memory.readPages(own, rows) }));
  }

  restore(slot: SlotId, pages: readonly PageId[], snapshot: Snapshot): void {
    this.#windows.refuse(slot);
    checkSnapshot(this.info, pages, snapshot);
    const own = [...pages];
    this.#settled(() => {
      keepLogits(this.#keptLogits, slot, snapshot.logits);
      this.#memory.writeState(slot, snapshot);
      this.#memory.writePages(own, snapshot.rows, snapshot);
    });
  }

  release(slot: SlotId): void {
    this.#windows.drop(slot);
    this.#queue(() => this.#keptLogits.delete(slot));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tail;
    this.#results.clear();
    await this.#pool.stop();
  }

  /** Copies all but the KV, once its turn comes; a held state is known by then. */
  #stateOf(source: SlotId | HeldState): () => SlotArrays {
    if (typeof source === "object") {
      const held = this.#held.contentOf(source);
      return () => copyHeld(held);
    }
    this.#windows.refuse(source);
    return () => ({
      ...this.#memory.readState(source),
      logits: this.#keptLogits.get(source) ?? null,
    });
  }

  /** The next pass's handle; its windows are open. */
  #begin(plan: Plan): PassHandle {
    const handle = (this.#passes + 1) as PassHandle;
    this.#windows.begin(handle, plan);
    this.#passes = handle;
    return handle;
  }

  #give(handle: PassHandle, pass: () => Promise<PassResult>): PassHandle {
    this.#results.set(handle, this.#queue(pass));
    return handle;
  }

  /** Runs after all that was queued before, whether it failed or not. */
  #queue<T>(task: () => T | Promise<T>): Promise<T> {
    const result = this.#tail.then(task);
    this.#tail = result.catch(() => {});
    return result;
  }

  /** The same, with nothing left waiting. */
  #settled<T>(task: () => T): Promise<T> {
    return this.#queue(async () => {
      if (this.#waiting.size > 0) await this.#run();
      return task();
    });
  }

  /** Leaves keeps, then a context, to the next pass: in a pass they come first, and in this order. */
  async #defer(kind: "keep" | "context", write: () => void): Promise<void> {
    if (this.#waiting.has(kind) || this.#waiting.has("context")) await this.#run();
    this.#waiting.set(kind, write);
  }

  /** Runs what waits, and then what `write` adds, as one pass. */
  #run(write: () => void = () => {}): Promise<void> {
    const writes = [...this.#waiting.values(), write];
    this.#waiting.clear();
    return this.#pool.run(() => {
      this.#writer.begin();
      for (const each of writes) each();
    });
  }

  #logits(draw: number, width: number): Float32Array {
    const { at, strideBytes } = this.#places.buffers.get("logits")!;
    return this.#arena.f32(at + draw * strideBytes, width);
  }

  /** Copies [rows, width] out. */
  #rows({ at, strideBytes }: RowArray, rows: number, width: number): Float32Array {
    const each = Array.from({ length: rows }, (_, row) =>
      this.#arena.f32(at + row * strideBytes, width),
    );
    return concat(each);
  }
}

/** Whether anything reads int8 activations: the model, or its drafter's blocks. */
const addsIntegers = ({ activations, drafter }: WasmOptions): boolean =>
  activations === "int8" || drafter?.activations === "int8";
