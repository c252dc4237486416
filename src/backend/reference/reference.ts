import { nextTask } from "../../clock.ts";
import type { BackendLostError } from "../../errors.ts";
import { invariant, MemoryError } from "../../errors.ts";
import type { PageId, SlotId } from "../../ids.ts";
import { forwardSteps, type Step } from "../../model/forward.ts";
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
import { type KvPages, kvOffset } from "./attention.ts";
import { loadReference, type ReferenceTensors, referenceBytes } from "./load.ts";
import { commit, pageFloats, ReferencePass, type SlotState, type WindowLog } from "./pass.ts";

/**
 * Plain TypeScript: f32 storage, f64 sums, slow and obvious. The oracle for every kernel. Passes run
 * at once, when they are given.
 */
export class ReferenceBackend implements Backend {
  readonly info: BackendInfo;
  readonly lost: Promise<BackendLostError> = new Promise(() => {});
  readonly #shape: ModelShape;
  readonly #tensors: ReferenceTensors;
  readonly #steps: readonly Step[];
  readonly #slots: readonly SlotState[];
  readonly #kv: readonly KvPages[];
  readonly #results = new Map<PassHandle, PassResult>();
  readonly #keptLogits = new Map<SlotId, Float32Array>();
  readonly #windows = new OpenWindows();
  /** What each slot's latest window left for its keep. */
  readonly #logs = new Map<SlotId, WindowLog>();
  #passes = 0;

  private constructor(options: BackendOptions, tensors: ReferenceTensors) {
    const { shape } = options.weights;
    const sizes = derivedSizes(shape);
    this.#shape = shape;
    this.#tensors = tensors;
    this.#steps = forwardSteps(shape, options.taps);
    const floats = (count: number, length: number) =>
      Array.from({ length: count }, () => new Float32Array(length));
    this.#slots = Array.from({ length: options.slots }, () => ({
      state: floats(sizes.linearLayers, sizes.stateFloats),
      history: floats(sizes.linearLayers, sizes.historyFloats),
    }));
    const kvFloats = options.pages * pageFloats(shape);
    this.#kv = Array.from({ length: sizes.fullLayers }, () => ({
      keys: new Float32Array(kvFloats),
      values: new Float32Array(kvFloats),
    }));
    const slotBytes = 4 * sizes.linearLayers * (sizes.stateFloats + sizes.historyFloats);
    this.info = {
      name: "reference",
      device: "plain TypeScript",
      arithmetic: "f32 storage, f64 sums",
      activations: "f32",
      shape,
      slots: options.slots,
      pages: options.pages,
      rowsMax: options.rowsMax,
      drawsMax: options.drawsMax,
      memory: {
        weightBytes: tensors.bytes,
        stateBytes: options.slots * slotBytes,
        kvBytes: 8 * sizes.fullLayers * kvFloats,
        workspaceBytes: 0,
      },
    };
  }

  /** @throws MemoryError where the weights alone, widened to f32, are over what may be taken */
  static async open(options: BackendOptions): Promise<ReferenceBackend> {
    const bytes = referenceBytes(options);
    const limit = options.memoryBytesMax ?? Number.POSITIVE_INFINITY;
    if (bytes > limit) throw new MemoryError(bytes, limit, "The wasm backend packs weights.");
    return new ReferenceBackend(options, await loadReference(options));
  }

  open(slot: SlotId): void {
    this.#keptLogits.delete(slot);
    this.#windows.drop(slot);
    const { state, history } = this.#slots[slot]!;
    for (const array of [...state, ...history]) array.fill(0);
  }

  prefill(plan: Plan): PassHandle {
    return this.verify(plan);
  }

  verify(plan: Plan): PassHandle {
    validatePlan(plan, { ...this.info, vocabSize: this.#shape.vocabSize });
    const handle = (this.#passes + 1) as PassHandle;
    this.#windows.begin(handle, plan);
    this.#passes = handle;
    const pass = new ReferencePass(this.#shape, this.#tensors, this.#slots, this.#kv, plan);
    pass.run(this.#steps);
    for (const [slot, log] of pass.windows) this.#logs.set(slot, log);
    const draws = drawCandidates(plan, (draw) => pass.rows("logits")[draw]!, this.#keptLogits);
    this.#results.set(handle, { draws, taps: pass.taps });
    return handle;
  }

  keep(handle: PassHandle, rows: readonly number[]): void {
    for (const { slot, rows: count } of this.#windows.close(handle, rows)) {
      commit(this.#shape, this.#slots[slot]!, this.#logs.get(slot)!, count);
      this.#keptLogits.delete(slot);
    }
  }

  async read(handle: PassHandle): Promise<PassResult> {
    const result = this.#results.get(handle);
    invariant(result !== undefined, `pass ${handle} was never given or was read before`);
    this.#results.delete(handle);
    await nextTask();
    return result;
  }

  async save(slot: SlotId, pages: readonly PageId[], rows: number): Promise<Snapshot> {
    this.#windows.refuse(slot);
    const { state, history } = this.#slots[slot]!;
    const sizes = derivedSizes(this.#shape);
    const keys = new Float32Array(sizes.fullLayers * rows * sizes.kvDim);
    const values = new Float32Array(keys.length);
    this.#eachKv(pages, rows, (layer, from, to, width) => {
      const kv = this.#kv[layer]!;
      keys.set(kv.keys.subarray(from, from + width), to);
      values.set(kv.values.subarray(from, from + width), to);
    });
    const logits = this.#keptLogits.get(slot) ?? null;
    return { rows, state: concat(state), history: concat(history), keys, values, logits };
  }

  restore(slot: SlotId, pages: readonly PageId[], snapshot: Snapshot): void {
    this.#windows.refuse(slot);
    checkSnapshot(this.info, pages, snapshot);
    keepLogits(this.#keptLogits, slot, snapshot.logits);
    const { state, history } = this.#slots[slot]!;
    state.forEach((array, layer) => {
      array.set(snapshot.state.subarray(layer * array.length, (layer + 1) * array.length));
    });
    history.forEach((array, layer) => {
      array.set(snapshot.history.subarray(layer * array.length, (layer + 1) * array.length));
    });
    this.#eachKv(pages, snapshot.rows, (layer, to, from, width) => {
      this.#kv[layer]!.keys.set(snapshot.keys.subarray(from, from + width), to);
      this.#kv[layer]!.values.set(snapshot.values.subarray(from, from + width), to);
    });
  }

  release(slot: SlotId): void {
    this.#keptLogits.delete(slot);
    this.#windows.drop(slot);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#results.clear();
  }

  /** Visits every KV vector of positions [0, rows): its place in the pages and in a snapshot. */
  #eachKv(
    pages: readonly PageId[],
    rows: number,
    visit: (layer: number, inPages: number, inSnapshot: number, width: number) => void,
  ): void {
    const width = this.#shape.headDim;
    this.#kv.forEach((_, layer) => {
      for (let row = 0; row < rows; row++) {
        for (let head = 0; head < this.#shape.kvHeadCount; head++) {
          const at = ((layer * rows + row) * this.#shape.kvHeadCount + head) * width;
          visit(layer, kvOffset(this.#shape, pages, row, head), at, width);
        }
      }
    });
  }
}
