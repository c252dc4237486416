import { nextTask } from "../../clock.ts";
import type { BackendLostError } from "../../errors.ts";
import { invariant, MemoryError } from "../../errors.ts";
import type { PageId, SlotId } from "../../ids.ts";
import type { Step } from "../../model/forward.ts";
import { type Plan, validatePlan } from "../../model/plan.ts";
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
import { commit } from "./delta-steps.ts";
import {
  headRowsOf,
  loadReference,
  type ReferenceSteps,
  type ReferenceTensors,
  referenceBytes,
  referenceSteps,
} from "./load.ts";
import {
  copyPage,
  movePath,
  type ReferenceMemory,
  readKv,
  readState,
  referenceMemory,
  writeKv,
  writeState,
} from "./memory.ts";
import { ReferencePass } from "./pass.ts";

/**
 * Plain TypeScript: f32 storage, f64 sums, slow and obvious. The oracle for every kernel. Passes run
 * at once, when they are given.
 */
export class ReferenceBackend implements Backend {
  readonly info: BackendInfo;
  readonly lost: Promise<BackendLostError> = new Promise(() => {});
  readonly #tensors: ReferenceTensors;
  readonly #steps: ReferenceSteps;
  readonly #memory: ReferenceMemory;
  readonly #headRows: number;
  readonly #results = new Map<PassHandle, PassResult>();
  readonly #keptLogits = new Map<SlotId, Float32Array>();
  readonly #windows = new OpenWindows();
  readonly #held: HeldStates<StateArrays>;
  /** By slot, the pass of its latest window. */
  readonly #windowPasses = new Map<SlotId, ReferencePass>();
  #passes = 0;

  private constructor(options: BackendOptions, tensors: ReferenceTensors) {
    this.#tensors = tensors;
    this.#steps = referenceSteps(options);
    this.#memory = referenceMemory(options);
    this.#headRows = headRowsOf(options);
    this.#held = new HeldStates(heldBytes(options.weights.shape));
    this.info = {
      name: "reference",
      device: "plain TypeScript",
      arithmetic: "f32 storage, f64 sums",
      activations: "f32",
      shape: options.weights.shape,
      drafter: options.drafter?.weights.shape ?? null,
      slots: options.slots,
      pages: options.pages,
      rowsMax: options.rowsMax,
      drawsMax: options.drawsMax,
      memory: {
        weightBytes: tensors.bytes,
        stateBytes: this.#memory.stateBytes,
        kvBytes: this.#memory.kvBytes,
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
    const { state, history } = this.#memory.slots[slot]!;
    for (const array of [...state, ...history]) array.fill(0);
  }

  prefill(plan: Plan): PassHandle {
    return this.verify(plan);
  }

  verify(plan: Plan): PassHandle {
    validatePlan(plan, { ...this.info, vocabSize: this.info.shape.vocabSize });
    const handle = this.#begin(plan);
    const pass = this.#run(plan, this.#steps.forward);
    for (const slot of pass.windows.keys()) this.#windowPasses.set(slot, pass);
    const draws = drawCandidates(plan, (draw) => pass.rows("logits")[draw]!, this.#keptLogits);
    this.#results.set(handle, { draws, taps: pass.taps, selector: null });
    return handle;
  }

  keep(handle: PassHandle, paths: readonly (readonly number[])[]): void {
    for (const { slot, segment, path, draw } of this.#windows.close(handle, paths)) {
      const pass = this.#windowPasses.get(slot)!;
      commit(this.info.shape, this.#memory.slots[slot]!, pass.windows.get(slot) ?? [], path);
      movePath(this.#memory, segment, path);
      keepLogits(this.#keptLogits, slot, draw === null ? null : pass.rows("logits")[draw]!);
    }
  }

  extend(plan: Plan): void {
    checkExtend(this.info, plan);
    this.#begin(plan);
    this.#run(plan, this.#steps.context);
  }

  draft(plan: Plan): PassHandle {
    checkDraft(this.info, plan);
    const handle = this.#begin(plan);
    const pass = this.#run(plan, this.#steps.block);
    const proposed = (draw: number) => pass.rows("logits")[draw]!.subarray(0, this.#headRows);
    const selector = this.info.drafter?.selector ? concat(pass.rows("selector")) : null;
    this.#results.set(handle, { draws: draftCandidates(plan, proposed), taps: [], selector });
    return handle;
  }

  async read(handle: PassHandle): Promise<PassResult> {
    const result = this.#results.get(handle);
    invariant(result !== undefined, `pass ${handle} was never given or was read before`);
    this.#results.delete(handle);
    await nextTask();
    return result;
  }

  async hold(slot: SlotId): Promise<HeldState> {
    this.#windows.refuse(slot);
    return this.#held.add((into) => readState(this.#memory.slots[slot]!, into));
  }

  resume(slot: SlotId, held: HeldState): void {
    this.#windows.refuse(slot);
    writeState(this.#memory.slots[slot]!, this.#held.contentOf(held));
    this.#keptLogits.delete(slot);
  }

  copyPage(from: PageId, to: PageId): void {
    copyPage(this.#memory.kv, from, to);
    copyPage(this.#memory.draftKv, from, to);
  }

  async save(
    source: SlotId | HeldState,
    pages: readonly PageId[],
    rows: number,
  ): Promise<Snapshot> {
    const { kv, draftKv } = this.#memory;
    const draft = readKv(draftKv, pages, rows);
    return {
      rows,
      ...this.#stateOf(source),
      ...readKv(kv, pages, rows),
      draftKeys: draft.keys,
      draftValues: draft.values,
    };
  }

  restore(slot: SlotId, pages: readonly PageId[], snapshot: Snapshot): void {
    this.#windows.refuse(slot);
    checkSnapshot(this.info, pages, snapshot);
    keepLogits(this.#keptLogits, slot, snapshot.logits);
    const { slots, kv, draftKv } = this.#memory;
    writeState(slots[slot]!, snapshot);
    writeKv(kv, pages, snapshot.rows, snapshot);
    const draft = { keys: snapshot.draftKeys, values: snapshot.draftValues };
    writeKv(draftKv, pages, snapshot.rows, draft);
  }

  release(slot: SlotId): void {
    this.#keptLogits.delete(slot);
    this.#windows.drop(slot);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#results.clear();
  }

  /** Copies all but the KV. */
  #stateOf(source: SlotId | HeldState): SlotArrays {
    if (typeof source === "object") return copyHeld(this.#held.contentOf(source));
    this.#windows.refuse(source);
    const logits = this.#keptLogits.get(source) ?? null;
    return { ...readState(this.#memory.slots[source]!), logits };
  }

  #begin(plan: Plan): PassHandle {
    const handle = (this.#passes + 1) as PassHandle;
    this.#windows.begin(handle, plan);
    this.#passes = handle;
    return handle;
  }

  #run(plan: Plan, steps: readonly Step[]): ReferencePass {
    const { shape, drafter } = this.info;
    const view = { shape, drafter, tensors: this.#tensors, memory: this.#memory, plan };
    return new ReferencePass(view).run(steps);
  }
}
