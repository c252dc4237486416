import { BackendLostError, invariant } from "../../errors.ts";
import type { PageId, SlotId, TokenId } from "../../ids.ts";
import { pageRows } from "../../limits.ts";
import { type DrafterShape, featureRowsOf } from "../../model/drafter-shape.ts";
import {
  depthsOf,
  type Plan,
  pathOf,
  type Segment,
  segmentOf,
  validatePlan,
} from "../../model/plan.ts";
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
import { draftCandidates, drawCandidates, keepLogits, orderedOrNot } from "../draw-candidates.ts";
import { HeldStates } from "../held.ts";
import { OpenWindows } from "../windows.ts";
import { mix } from "./mix.ts";

export interface FakeOptions {
  readonly shape: ModelShape;
  readonly slots: number;
  readonly pages: number;
  readonly rowsMax: number;
  readonly drawsMax: number;
  /** Drafts blocks whose first candidates are wrong now and then. */
  readonly drafter?: { readonly weights: { readonly shape: DrafterShape } } | null;
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
 * that was mixed up, a row fed twice or a wrong position changes every token that follows. A draft
 * whose context is not what the stream was fed is refused.
 */
export class FakeBackend implements Backend {
  readonly info: BackendInfo;
  readonly lost: Promise<BackendLostError>;
  /** Slots that are open and not released: zero at the end of a test. */
  readonly openSlots: Set<SlotId> = new Set();
  /** States that are held and not disposed of: none at the end of a test. */
  readonly heldStates: HeldStates<number> = new HeldStates(4);
  readonly #options: FakeOptions;
  readonly #states: Uint32Array;
  /** [page, row]: a hash of the token and position written there. */
  readonly #pages: Uint32Array;
  /** [page, row]: what the drafter was given for it. */
  readonly #context: Uint32Array;
  /** [slot, place mod featureRows]: what the pass left there. */
  readonly #features: Uint32Array;
  readonly #featureRows: number;
  readonly #kept = new Map<SlotId, Float32Array>();
  readonly #windows = new OpenWindows();
  /** Of each slot's latest window. */
  readonly #windowIds = new Map<SlotId, readonly TokenId[]>();
  /** Of the latest pass: a window that keeps logits waits for its keep before the next. */
  #passLogits: (draw: number) => Float32Array = () => new Float32Array(0);
  readonly #results = new Map<PassHandle, PassResult | Error>();
  readonly #loseDevice: (error: BackendLostError) => void;
  #lostError: BackendLostError | null = null;
  #passes = 0;

  constructor(options: FakeOptions) {
    const { shape, slots, pages, rowsMax, drawsMax } = options;
    this.#options = options;
    this.#states = new Uint32Array(slots);
    this.#pages = new Uint32Array(pages * pageRows);
    this.#context = new Uint32Array(pages * pageRows);
    this.#featureRows = featureRowsOf(rowsMax);
    this.#features = new Uint32Array(slots * this.#featureRows);
    const { promise, resolve } = Promise.withResolvers<BackendLostError>();
    this.lost = promise;
    this.#loseDevice = resolve;
    this.info = {
      name: "fake",
      device: "none",
      arithmetic: "hashes",
      activations: "f32",
      shape,
      drafter: options.drafter?.weights.shape ?? null,
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
    const handle = this.#begin(plan);
    this.#results.set(handle, this.#run(plan));
    return handle;
  }

  keep(handle: PassHandle, paths: readonly (readonly number[])[]): void {
    this.#check();
    for (const { slot, segment, path, draw } of this.#windows.close(handle, paths)) {
      const ids = this.#windowIds.get(slot);
      invariant(ids !== undefined, `a keep of pass ${handle}, which failed`);
      this.#states[slot] = path.reduce((state, row) => mix(state, ids[row]!), this.#states[slot]!);
      keepLogits(this.#kept, slot, draw === null ? null : this.#passLogits(draw));
      // Rows ascend along a path, so that none is overwritten before it is moved.
      path.forEach((row, depth) => {
        const from = segment.start + row;
        const to = segment.start + depth;
        this.#pages[this.#at(segment.pages, to)] = this.#pages[this.#at(segment.pages, from)]!;
        this.#features[this.#feature(slot, to)] = this.#features[this.#feature(slot, from)]!;
      });
    }
  }

  extend(plan: Plan): void {
    this.#check();
    checkExtend(this.info, plan);
    this.#begin(plan);
    for (const { stateSlot, start, rows, pages } of plan.segments) {
      for (let row = start; row < start + rows; row++) {
        this.#context[this.#at(pages, row)] = this.#features[this.#feature(stateSlot, row)]!;
      }
    }
  }

  draft(plan: Plan): PassHandle {
    checkDraft(this.info, plan);
    const handle = this.#begin(plan);
    this.#results.set(handle, this.#draftBlocks(plan));
    return handle;
  }

  async read(handle: PassHandle): Promise<PassResult> {
    const result = this.#results.get(handle);
    invariant(result !== undefined, `pass ${handle} was never given or was read before`);
    this.#results.delete(handle);
    this.#check();
    if (result instanceof Error) throw result;
    return result;
  }

  async hold(slot: SlotId): Promise<HeldState> {
    this.#check();
    this.#windows.refuse(slot);
    this.#refuseClosed(slot);
    // A device may have to look for room first: a slot that is fed meanwhile is held as it is then.
    await Promise.resolve();
    this.#check();
    return this.heldStates.add(() => this.#states[slot]!);
  }

  resume(slot: SlotId, held: HeldState): void {
    this.#check();
    this.#windows.refuse(slot);
    this.#refuseClosed(slot);
    this.#states[slot] = this.heldStates.contentOf(held);
    this.#kept.delete(slot);
    const features = this.#feature(slot, 0);
    this.#features.fill(0, features, features + this.#featureRows);
  }

  copyPage(from: PageId, to: PageId): void {
    this.#check();
    for (const words of [this.#pages, this.#context]) {
      words.copyWithin(to * pageRows, from * pageRows, (from + 1) * pageRows);
    }
  }

  async save(
    source: SlotId | HeldState,
    pages: readonly PageId[],
    rows: number,
  ): Promise<Snapshot> {
    this.#check();
    const { word, logits } = this.#stateOf(source);
    const keys = Float32Array.from({ length: rows }, (_, row) => this.#kv(pages, row));
    const draftKeys = Float32Array.from({ length: this.#options.drafter ? rows : 0 }, (_, row) => {
      return this.#context[this.#at(pages, row)]!;
    });
    const state = Float32Array.of(word >>> 8, word & 0xff);
    const history = new Float32Array(0);
    return { rows, state, history, keys, values: keys, draftKeys, draftValues: draftKeys, logits };
  }

  restore(slot: SlotId, pages: readonly PageId[], snapshot: Snapshot): void {
    this.#check();
    this.#windows.refuse(slot);
    keepLogits(this.#kept, slot, snapshot.logits);
    this.#states[slot] = snapshot.state[0]! * 256 + snapshot.state[1]!;
    snapshot.keys.forEach((value, row) => {
      this.#pages[this.#at(pages, row)] = value;
    });
    snapshot.draftKeys.forEach((value, row) => {
      this.#context[this.#at(pages, row)] = value;
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

  #begin(plan: Plan): PassHandle {
    const handle = (this.#passes + 1) as PassHandle;
    this.#windows.begin(handle, plan);
    this.#passes = handle;
    return handle;
  }

  /** What `save` copies besides the KV. */
  #stateOf(source: SlotId | HeldState): { word: number; logits: Float32Array | null } {
    if (typeof source === "object") {
      return { word: this.heldStates.contentOf(source), logits: null };
    }
    this.#windows.refuse(source);
    return { word: this.#states[source]!, logits: this.#kept.get(source) ?? null };
  }

  #refuseClosed(slot: SlotId): void {
    invariant(this.openSlots.has(slot), `slot ${slot} is not open`);
  }

  #check(): void {
    if (this.#lostError) throw this.#lostError;
  }

  #run(plan: Plan): PassResult | Error {
    try {
      this.#check();
      for (const { stateSlot } of plan.segments) this.#windowIds.delete(stateSlot);
      this.#options.fault?.(this.#passes, plan);
      for (const segment of plan.segments) this.#write(plan, segment);
      const histories = plan.draws.map(({ row }) => this.#history(plan, row));
      for (const segment of plan.segments) this.#advance(plan, segment);
      this.#options.onPass?.(plan.ids.length);
      const logits = (draw: number) => this.#logits(histories[draw]!);
      this.#passLogits = logits;
      return { draws: drawCandidates(plan, logits, this.#kept), taps: [], selector: null };
    } catch (error) {
      return error as Error;
    }
  }

  /** Leaves the rows' tokens and positions in the pages. */
  #write(plan: Plan, segment: Segment): void {
    const { nextSlot, pages, start, firstRow, rows } = segment;
    this.#refuseClosed(nextSlot);
    const depths = depthsOf(segment);
    for (let local = 0; local < rows; local++) {
      // 24 bits, so that a snapshot's float holds it exactly.
      const word = mix(plan.ids[firstRow + local]!, start + depths[local]!) >>> 8;
      this.#pages[this.#at(pages, start + local)] = word;
      this.#features[this.#feature(nextSlot, start + local)] = word;
    }
  }

  /** A row's hash over the state and all the KV that it sees. */
  #history(plan: Plan, row: number): number {
    const segment = segmentOf(plan, row);
    const { stateSlot, pages, start, firstRow } = segment;
    const path = pathOf(segment, row - firstRow);
    const ids = path.map((local) => plan.ids[firstRow + local]!);
    let history = this.#seen(ids.reduce(mix, this.#states[stateSlot]!), pages, start);
    for (const local of path) history = mix(history, this.#kv(pages, start + local));
    return history;
  }

  /** A hash over another and the KV of places [0, rows). */
  #seen(hash: number, pages: readonly PageId[], rows: number): number {
    let seen = hash;
    for (let first = 0; first < rows; first += pageRows) {
      const at = this.#at(pages, first);
      const end = at + Math.min(pageRows, rows - first);
      for (let place = at; place < end; place++) seen = mix(seen, this.#pages[place]!);
    }
    return seen;
  }

  /** Feeds a segment's rows to its state; a window's wait for their keep. */
  #advance(plan: Plan, { stateSlot, nextSlot, firstRow, rows, window }: Segment): void {
    const ids: readonly TokenId[] = plan.ids.slice(firstRow, firstRow + rows);
    if (window) this.#windowIds.set(nextSlot, ids);
    else this.#states[nextSlot] = ids.reduce(mix, this.#states[stateSlot]!);
  }

  #draftBlocks(plan: Plan): PassResult | Error {
    try {
      this.#check();
      this.#options.fault?.(this.#passes, plan);
      const truths = plan.segments.flatMap((segment) => this.#draftBlock(plan, segment));
      const logits = (draw: number) => truths[plan.draws[draw]!.row]!;
      const { selector } = this.info.drafter!;
      // Queries of zero: every candidate follows every token alike.
      const queries = selector && new Float32Array(plan.draws.length * selector.rank);
      return { draws: draftCandidates(plan, logits), taps: [], selector: queries };
    } catch (error) {
      return error as Error;
    }
  }

  /** The logits that a stream's own greedy tokens would have, now and then turned round. */
  #draftBlock(plan: Plan, { stateSlot, pages, start, firstRow, rows }: Segment): Float32Array[] {
    for (let row = 0; row < start; row++) {
      const given = this.#context[this.#at(pages, row)];
      invariant(given === this.#kv(pages, row), `a draft whose context is wrong at ${row}`);
    }
    const ids = [plan.ids[firstRow]!];
    const words: number[] = [];
    let state = this.#states[stateSlot]!;
    // The anchor's row predicts nothing.
    const rowsOut: Float32Array[] = [new Float32Array(0)];
    for (let local = 1; local < rows; local++) {
      const id = ids[local - 1]!;
      state = mix(state, id);
      words.push(mix(id, start + local - 1) >>> 8);
      const history = words.reduce(mix, this.#seen(state, pages, start));
      const truth = this.#logits(history);
      const wrong = mix(history, local) % 4 === 0;
      rowsOut.push(wrong ? truth.map((logit) => 8 - logit) : truth);
      const best = orderedOrNot(rowsOut[local]!, 1, start + local);
      ids.push("ids" in best ? best.ids[0]! : 0);
    }
    return rowsOut;
  }

  #logits(history: number): Float32Array {
    const row = new Float32Array(this.#options.shape.vocabSize);
    for (let id = 0; id < row.length; id++) row[id] = mix(history, id) / 2 ** 28;
    this.#options.logits?.(row, history);
    return row;
  }

  #feature(slot: SlotId, place: number): number {
    return slot * this.#featureRows + (place % this.#featureRows);
  }

  #at(pages: readonly PageId[], position: number): number {
    return pages[Math.floor(position / pageRows)]! * pageRows + (position % pageRows);
  }

  #kv(pages: readonly PageId[], position: number): number {
    return this.#pages[this.#at(pages, position)]!;
  }
}
