import { type BackendLostError, invariant } from "../../errors.ts";
import type { PageId, SlotId } from "../../ids.ts";
import { type Plan, validatePlan } from "../../model/plan.ts";
import { derivedSizes, type ModelShape } from "../../model/shape.ts";
import { concat } from "../arrays.ts";
import type {
  Backend,
  BackendInfo,
  BackendOptions,
  PassHandle,
  PassResult,
  Snapshot,
} from "../backend.ts";
import { drawCandidates, keepLogits } from "../draw-candidates.ts";
import { checkSnapshot } from "../snapshot.ts";
import { OpenWindows } from "../windows.ts";
import { Arena } from "./arena.ts";
import { ACTIVATIONS_F32, ACTIVATIONS_INT8, PAGE_ROWS } from "./layout.ts";
import { writeKeep, writePass } from "./pass.ts";
import { type Places, placeAll } from "./places.ts";
import type { WasmPlatform } from "./platform.ts";
import { ThreadPool } from "./pool.ts";
import { probeKernels } from "./probe.ts";
import { ProgramBuilder } from "./program.ts";
import { checkShape } from "./support.ts";

/** Kernels' control block and guard space lie below. */
const arenaStart = 4096;

export interface WasmOptions extends BackendOptions {
  readonly platform: WasmPlatform;
  readonly threads: number;
  readonly activations: "f32" | "int8";
}

/**
 * WebAssembly SIMD over threads. One arithmetic class serves prompts and decoding: a row's sums have
 * one order, whatever the pass holds (the contracts stand in `kernels/`).
 */
export class WasmBackend implements Backend {
  readonly info: BackendInfo;
  readonly lost: Promise<BackendLostError>;
  readonly #shape: ModelShape;
  readonly #arena: Arena;
  readonly #places: Places;
  readonly #pool: ThreadPool;
  readonly #results = new Map<PassHandle, Promise<PassResult>>();
  readonly #keptLogits = new Map<SlotId, Float32Array>();
  readonly #windows = new OpenWindows();
  #passes = 0;
  /** Everything that touches the memory, in order. */
  #tail: Promise<unknown> = Promise.resolve();

  private constructor(
    options: WasmOptions,
    arena: Arena,
    places: Places,
    pool: ThreadPool,
    info: BackendInfo,
  ) {
    this.#shape = options.weights.shape;
    this.#arena = arena;
    this.#places = places;
    this.#pool = pool;
    this.info = info;
    this.lost = pool.lost;
  }

  static async open(options: WasmOptions): Promise<WasmBackend> {
    const { weights, platform, threads, activations, onProgress } = options;
    checkShape(weights.shape);
    const kernels = await probeKernels(platform);
    const arena = new Arena(arenaStart);
    const places = placeAll(arena, options, threads);
    const before = arena.bytes;
    const kind = activations === "int8" ? ACTIVATIONS_INT8 : ACTIVATIONS_F32;
    const program = new ProgramBuilder(arena, options, places, kind).build(options.taps);
    const weightBytes = arena.bytes - before;
    await arena.fill(options.memoryBytesMax ?? Number.POSITIVE_INFINITY, onProgress);
    const setup = {
      module: kernels.module,
      program: program.at,
      instructions: program.count,
      counters: program.counters,
      pass: places.pass.block,
    };
    const pool = await ThreadPool.start(platform, arena, setup, places.scratches);
    const simd = kernels.relaxed ? "relaxed SIMD" : "SIMD";
    const { slots, pages, rowsMax, drawsMax } = options;
    const info: BackendInfo = {
      name: "wasm",
      device: `${threads} thread${threads === 1 ? "" : "s"}`,
      arithmetic: `${simd}, ${kernels.fused ? "fused" : "unfused"} multiply-add, ${activations} activations`,
      activations,
      shape: weights.shape,
      slots,
      pages,
      rowsMax,
      drawsMax,
      memory: { weightBytes, ...places.memory },
    };
    return new WasmBackend(options, arena, places, pool, info);
  }

  open(slot: SlotId): void {
    this.#windows.drop(slot);
    this.#queue(() => {
      this.#keptLogits.delete(slot);
      for (const array of [...this.#states(slot), ...this.#histories(slot)]) array.fill(0);
    });
  }

  prefill(plan: Plan): PassHandle {
    return this.verify(plan);
  }

  verify(plan: Plan): PassHandle {
    validatePlan(plan, { ...this.info, vocabSize: this.#shape.vocabSize });
    const handle = (this.#passes + 1) as PassHandle;
    this.#windows.begin(handle, plan);
    this.#passes = handle;
    this.#results.set(
      handle,
      this.#queue(async () => {
        await this.#pool.run(() => writePass(this.#arena, this.#shape, this.#places.pass, plan));
        const draws = drawCandidates(plan, (draw) => this.#logits(draw), this.#keptLogits);
        return { draws, taps: this.#taps(plan.ids.length) };
      }),
    );
    return handle;
  }

  keep(handle: PassHandle, rows: readonly number[]): void {
    const kept = this.#windows.close(handle, rows);
    if (kept.length === 0) return;
    this.#queue(async () => {
      await this.#pool.run(() => writeKeep(this.#arena, this.#places.pass, kept));
      for (const { slot } of kept) this.#keptLogits.delete(slot);
    });
  }

  async read(handle: PassHandle): Promise<PassResult> {
    const result = this.#results.get(handle);
    invariant(result !== undefined, `pass ${handle} was never given or was read before`);
    this.#results.delete(handle);
    return result;
  }

  async save(slot: SlotId, pages: readonly PageId[], rows: number): Promise<Snapshot> {
    this.#windows.refuse(slot);
    // The caller's array may change before this comes to be done.
    const held = [...pages];
    return this.#queue(() => {
      const sizes = derivedSizes(this.#shape);
      const keys = new Float32Array(sizes.fullLayers * rows * sizes.kvDim);
      const values = new Float32Array(keys.length);
      this.#eachKv(held, rows, (keyRow, valueRow, at) => {
        keys.set(keyRow, at);
        values.set(valueRow, at);
      });
      const state = concat(this.#states(slot));
      const logits = this.#keptLogits.get(slot) ?? null;
      return { rows, state, history: concat(this.#histories(slot)), keys, values, logits };
    });
  }

  restore(slot: SlotId, pages: readonly PageId[], snapshot: Snapshot): void {
    this.#windows.refuse(slot);
    checkSnapshot(this.info, pages, snapshot);
    const held = [...pages];
    this.#queue(() => {
      keepLogits(this.#keptLogits, slot, snapshot.logits);
      split(snapshot.state, this.#states(slot));
      split(snapshot.history, this.#histories(slot));
      this.#eachKv(held, snapshot.rows, (keyRow, valueRow, at) => {
        keyRow.set(snapshot.keys.subarray(at, at + keyRow.length));
        valueRow.set(snapshot.values.subarray(at, at + valueRow.length));
      });
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

  /** Runs after all that was queued before, whether it failed or not. */
  #queue<T>(task: () => T | Promise<T>): Promise<T> {
    const result = this.#tail.then(task);
    this.#tail = result.catch(() => {});
    return result;
  }

  #logits(draw: number): Float32Array {
    const { at, strideBytes } = this.#places.buffers.get("logits")!;
    return this.#arena.f32(at + draw * strideBytes, this.#shape.vocabSize);
  }

  #taps(rows: number): Float32Array[] {
    const width = this.#shape.hiddenSize;
    return this.#places.taps.map(({ at, strideBytes }) => {
      const all = new Float32Array(rows * width);
      for (let row = 0; row < rows; row++) {
        all.set(this.#arena.f32(at + row * strideBytes, width), row * width);
      }
      return all;
    });
  }

  #states(slot: SlotId): Float32Array[] {
    const { stateFloats } = derivedSizes(this.#shape);
    return this.#places.states.map((at) =>
      this.#arena.f32(at + 4 * slot * stateFloats, stateFloats),
    );
  }

  #histories(slot: SlotId): Float32Array[] {
    const { historyFloats } = derivedSizes(this.#shape);
    return this.#places.histories.map((at) =>
      this.#arena.f32(at + 4 * slot * historyFloats, historyFloats),
    );
  }

  /** Visits every KV vector of positions [0, rows) with its place in a snapshot. */
  #eachKv(
    pages: readonly PageId[],
    rows: number,
    visit: (key: Float32Array, value: Float32Array, at: number) => void,
  ): void {
    const { kvHeadCount, headDim } = this.#shape;
    const { keys, values, pageBytes } = this.#places;
    keys.forEach((keysAt, layer) => {
      for (let row = 0; row < rows; row++) {
        const page = pages[Math.floor(row / PAGE_ROWS)]! * pageBytes;
        for (let head = 0; head < kvHeadCount; head++) {
          const within = page + 4 * (head * PAGE_ROWS + (row % PAGE_ROWS)) * headDim;
          visit(
            this.#arena.f32(keysAt + within, headDim),
            this.#arena.f32(values[layer]! + within, headDim),
            ((layer * rows + row) * kvHeadCount + head) * headDim,
          );
        }
      }
    });
  }
}

function split(from: Float32Array, into: readonly Float32Array[]): void {
  let at = 0;
  for (const array of into) {
    array.set(from.subarray(at, at + array.length));
    at += array.length;
  }
}
