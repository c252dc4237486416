import { BackendLostError, invariant } from "../../errors.ts";
import type { PageId, SlotId, TokenId } from "../../ids.ts";
import { pageRows } from "../../limits.ts";
import { type Plan, type Segment, validatePlan } from "../../model/plan.ts";
import type { ModelShape } from "../../model/shape.ts";
import type { Backend, BackendInfo, PassHandle, PassResult, Snapshot } from "../backend.ts";
import { drawCandidates, keepLogits } from "../draw-candidates.ts";
import { OpenWindows } from "../windows.ts";
import { mix } from "./mix.ts";

export interface FakeOptions {
  readonly shape: ModelShape;
  readonly slots: number;
  readonly pages: number;
  readonly rowsMax: number;
  readonly drawsMax: number;
  /** Called with the pass's number before it runs; throws to make it fail. */
  readonly fault?: (pass: number, plan: Plan) => void;
  /** Turns a row's logits into what the test wants; the row's history hash comes with it. */
  readonly logits?: (row: Float32Array, history: number) => void;
  /** Called with the rows of each pass, to move a virtual clock. */
  readonly onPass?: (rows: number) => void;
}

/**
 * A backend without arithmetic. A slot's state is a hash of every token it was fed, in order, and the
 * KV pages hold each token and position; a row's logits hash both. So a slot that was not reset, a page
 * that was mixed up, a row fed twice or a wrong position changes every token that follows.
 */
export class FakeBackend implements Backend {
  readonly info: BackendInfo;
  readonly lost: Promise<BackendLostError>;
  /** Slots that are open and not released: zero at the end of a test. */
  readonly openSlots: Set<SlotId> = new Set();
  readonly #options: FakeOptions;
  readonly #states: Uint32Array;
  /** [page, row]: a hash of the token and position written there. */
  readonly #pages: Uint32Array;
  readonly #kept = new Map<SlotId, Float32Array>();
  readonly #windows = new OpenWindows();
  /** Ids of each slot's latest window. */
  readonly #windowIds = new Map<SlotId, readonly TokenId[]>();
  readonly #results = new Map<PassHandle, PassResult | Error>();
  readonly #loseDevice: (error: BackendLostError) => void;
  #lostError: BackendLostError | null = null;
  #passes = 0;

  constructor(options: FakeOptions) {
    const { shape, slots, pages, rowsMax, drawsMax } = options;
    this.#options = options;
    this.#states = new Uint32Array(slots);
    this.#pages = new Uint32Array(pages * pageRows);
    const { promise, resolve } = Promise.withResolvers<BackendLostError>();
    this.lost = promise;
    this.#loseDevice = resolve;
    this.info = {
      name: "fake",
      device: "none",
      arithmetic: "hashes",
      activations: "f32",
      shape,
      slots,
      pages,
      rowsMax,
      drawsMax,
      memory: {
        weightBytes: 0,
        stateBytes: 4 * slots,
        kvBytes: 4 * pages * pageRows,
        workspaceBytes: 0,
      },
    };
  }

  /** From now on every verb but `release` fails, as if the device were gone. */
  lose(): void {
    this.#lostError ??= new BackendLostError("the fake device was lost");
    this.#loseDevice(this.#lostError);
  }

  open(slot: SlotId): void {
    this.#check();
    invariant(!this.openSlots.has(slot), `slot ${slot} is open already`);
    this.openSlots.add(slot);
    this.#states[slot] = 0;
    this.#kept.delete(slot);
    this.#windows.drop(slot);
  }

  prefill(plan: Plan): PassHandle {
    return this.verify(plan);
  }

  verify(plan: Plan): PassHandle {
    validatePlan(plan, { ...this.info, vocabSize: this.#options.shape.vocabSize });
    const handle = (this.#passes + 1) as PassHandle;
    this.#windows.begin(handle, plan);
    this.#passes = handle;
    this.#results.set(handle, this.#run(plan));
    return handle;
  }

  keep(handle: PassHandle, rows: readonly number[]): void {
    this.#check();
    for (const { slot, rows: count } of this.#windows.close(handle, rows)) {
      const ids = this.#windowIds.get(slot);
      invariant(ids !== undefined, `a keep of pass ${handle}, which failed`);
      this.#states[slot] = ids.slice(0, count).reduce(mix, this.#states[slot]!);
      this.#kept.delete(slot);
    }
  }

  async read(handle: PassHandle): Promise<PassResult> {
    const result = this.#results.get(handle);
    invariant(result !== undefined, `pass ${handle} was never given or was read before`);
    this.#results.delete(handle);
    this.#check();
    if (result instanceof Error) throw result;
    return result;
  }

  async save(slot: SlotId, pages: readonly PageId[], rows: number): Promise<Snapshot> {
    this.#check();
    this.#windows.refuse(slot);
    const keys = Float32Array.from({ length: rows }, (_, row) => this.#kv(pages, row));
    const state = Float32Array.of(this.#states[slot]! >>> 8, this.#states[slot]! & 0xff);
    const logits = this.#kept.get(slot) ?? null;
    return { rows, state, history: new Float32Array(0), keys, values: keys, logits };
  }

  restore(slot: SlotId, pages: readonly PageId[], snapshot: Snapshot): void {
    this.#check();
    this.#windows.refuse(slot);
    keepLogits(this.#kept, slot, snapshot.logits);
    this.#states[slot] = snapshot.state[0]! * 256 + snapshot.state[1]!;
    snapshot.keys.forEach((value, row) => {
      this.#pages[this.#at(pages, row)] = value;
    });
  }

  release(slot: SlotId): void {
    invariant(this.openSlots.delete(slot), `slot ${slot} was released twice`);
    this.#kept.delete(slot);
    this.#windows.drop(slot);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#results.clear();
  }

  #check(): void {
    if (this.#lostError) throw this.#lostError;
  }

  #run(plan: Plan): PassResult | Error {
    try {
      this.#check();
      for (const { stateSlot } of plan.segments) this.#windowIds.delete(stateSlot);
      this.#options.fault?.(this.#passes, plan);
      const histories = plan.segments.flatMap((segment) => this.#advance(plan, segment));
      this.#options.onPass?.(plan.ids.length);
      const logits = (draw: number) => this.#logits(histories[plan.draws[draw]!.row]!);
      return { draws: drawCandidates(plan, logits, this.#kept), taps: [] };
    } catch (error) {
      return error as Error;
    }
  }

  /** Feeds a segment's rows; returns each row's hash over the state and all the KV it sees. */
  #advance(plan: Plan, segment: Segment): number[] {
    const { stateSlot, nextSlot, pages, start, firstRow, rows, window } = segment;
    invariant(this.openSlots.has(nextSlot), `slot ${nextSlot} is not open`);
    let state = this.#states[stateSlot]!;
    const histories: number[] = [];
    const ids: readonly TokenId[] = plan.ids.slice(firstRow, firstRow + rows);
    for (const [local, id] of ids.entries()) {
      const position = start + local;
      state = mix(state, id);
      // 24 bits, so that a snapshot's float holds it exactly.
      this.#pages[this.#at(pages, position)] = mix(id, position) >>> 8;
      let history = state;
      for (let row = 0; row <= position; row++) history = mix(history, this.#kv(pages, row));
      histories.push(history);
    }
    if (window) this.#windowIds.set(nextSlot, ids);
    else this.#states[nextSlot] = state;
    return histories;
  }

  #logits(history: number): Float32Array {
    const row = Float32Array.from(
      { length: this.#options.shape.vocabSize },
      (_, id) => mix(history, id) / 2 ** 28,
    );
    this.#options.logits?.(row, history);
    return row;
  }

  #at(pages: readonly PageId[], position: number): number {
    return pages[Math.floor(position / pageRows)]! * pageRows + (position % pageRows);
  }

  #kv(pages: readonly PageId[], position: number): number {
    return this.#pages[this.#at(pages, position)]!;
  }
}
