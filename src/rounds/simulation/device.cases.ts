import type { HeldState, PassHandle, PassResult, Snapshot } from "../../backend/backend.ts";
import { FakeBackend } from "../../backend/fake/fake.ts";
import { InvariantError, MemoryError } from "../../errors.ts";
import type { PageId, SlotId } from "../../ids.ts";
import type { Plan } from "../../model/plan.ts";
import { type DeviceOptions, fakeOptions } from "./device-options.cases.ts";
import type { VirtualTime } from "./virtual-time.cases.ts";

export type PassKind = "fill" | "decode" | "draft" | "extend";

/** Hears of everything that a device does. */
export interface DeviceEvents {
  pass(kind: PassKind, plan: Plan): void;
  /** Any other verb. */
  verb(name: string, slot: SlotId | null): void;
  held(slot: SlotId, held: HeldState): void;
  dropped(held: HeldState): void;
  /** A fault is played: whoever uses these slots may hear of it; null: everybody. */
  fault(slots: readonly SlotId[] | null): void;
  /** A verb was used as it must not be. */
  misused(error: InvariantError): void;
}

/** A fake that takes virtual time, one pass after the other, and fails as it is told to. */
export class Device extends FakeBackend {
  readonly #options: DeviceOptions;
  readonly #time: VirtualTime;
  readonly #events: DeviceEvents;
  /** When each pass is done. */
  readonly #doneMs = new Map<PassHandle, number>();
  readonly #failed = new Set<PassHandle>();
  #busyUntilMs = 0;
  #idleMs = 0;
  #passes = 0;
  #holds = 0;
  #saves = 0;
  #calls = 0;

  constructor(options: DeviceOptions, time: VirtualTime, events: DeviceEvents) {
    super(fakeOptions(options));
    this.#options = options;
    this.#time = time;
    this.#events = events;
  }

  /** How long it has had nothing to do so far. */
  get idleMs(): number {
    return this.#idleMs + Math.max(0, this.#time.nowMs() - this.#busyUntilMs);
  }

  override open(slot: SlotId): void {
    this.#verb("open", slot, () => super.open(slot));
  }

  override prefill(plan: Plan): PassHandle {
    return this.#pass("fill", plan, () => super.verify(plan));
  }

  override verify(plan: Plan): PassHandle {
    return this.#pass("decode", plan, () => super.verify(plan));
  }

  override draft(plan: Plan): PassHandle {
    return this.#pass("draft", plan, () => super.draft(plan));
  }

  override extend(plan: Plan): void {
    this.#events.pass("extend", plan);
    this.#call(() => super.extend(plan));
    this.#work(plan.ids.length);
  }

  override keep(handle: PassHandle, paths: readonly (readonly number[])[]): void {
    this.#verb(`keep ${paths.map((path) => path.join("-")).join(" ")}`, null, () =>
      super.keep(handle, paths),
    );
  }

  override async read(handle: PassHandle): Promise<PassResult> {
    await this.#time.until(this.#doneMs.get(handle) ?? 0);
    const result = await this.#wait(() => super.read(handle));
    if (this.#failed.has(handle)) throw new Error("planted: a pass");
    return result;
  }

  override async hold(slot: SlotId): Promise<HeldState> {
    this.#events.verb("hold", slot);
    await this.#time.until(this.#work(1));
    if (this.#options.refusedHolds.has(++this.#holds)) throw new MemoryError(4, 0, "planted");
    const held = await this.#wait(() => super.hold(slot));
    const dispose = held[Symbol.dispose].bind(held);
    const value = () => {
      this.#events.dropped(held);
      dispose();
    };
    Object.defineProperty(held, Symbol.dispose, { value });
    this.#events.held(slot, held);
    return held;
  }

  override resume(slot: SlotId, held: HeldState): void {
    this.#verb("resume", slot, () => super.resume(slot, held));
  }

  override copyPage(from: PageId, to: PageId): void {
    this.#verb(`copy ${from} to ${to}`, null, () => super.copyPage(from, to));
    this.#work(1);
  }

  override async save(
    source: SlotId | HeldState,
    pages: readonly PageId[],
    rows: number,
  ): Promise<Snapshot> {
    const slot = typeof source === "number" ? source : null;
    this.#events.verb(`save ${rows}`, slot);
    await this.#time.until(this.#work(1));
    if (this.#options.failingSaves.has(++this.#saves)) {
      this.#events.fault(slot === null ? [] : [slot]);
      throw new Error("planted: a save");
    }
    return await this.#wait(() => super.save(source, pages, rows));
  }

  override restore(slot: SlotId, pages: readonly PageId[], snapshot: Snapshot): void {
    this.#verb(`restore ${snapshot.rows}`, slot, () => super.restore(slot, pages, snapshot));
  }

  override release(slot: SlotId): void {
    this.#verb("release", slot, () => super.release(slot));
  }

  #verb(name: string, slot: SlotId | null, work: () => void): void {
    this.#events.verb(name, slot);
    this.#call(work);
  }

  #pass(kind: PassKind, plan: Plan, work: () => PassHandle): PassHandle {
    this.#events.pass(kind, plan);
    const handle = this.#call(work);
    this.#doneMs.set(handle, this.#work(plan.ids.length));
    if (this.#options.failingPasses.has(++this.#passes)) {
      this.#failed.add(handle);
      // Whoever shares a round with a block that fails is not fed.
      this.#events.fault(kind === "fill" ? plan.segments.map(({ stateSlot }) => stateSlot) : null);
    }
    return handle;
  }

  /** @returns when it will be done */
  #work(rows: number): number {
    const { passMs, rowMs } = this.#options;
    this.#idleMs = this.idleMs;
    const startMs = Math.max(this.#busyUntilMs, this.#time.nowMs());
    this.#busyUntilMs = startMs + passMs + rows * rowMs;
    return this.#busyUntilMs;
  }

  #call<Result>(work: () => Result): Result {
    const lost = ++this.#calls === this.#options.lostIn;
    if (lost) this.#events.fault(null);
    if (lost && !this.#options.lostAfter) this.lose();
    try {
      const result = work();
      if (lost) this.lose();
      return result;
    } catch (error) {
      throw this.#told(error);
    }
  }

  async #wait<Result>(work: () => Promise<Result>): Promise<Result> {
    const result = this.#call(work);
    return await result.catch((error: unknown) => {
      throw this.#told(error);
    });
  }

  #told(error: unknown): unknown {
    if (error instanceof InvariantError) this.#events.misused(error);
    return error;
  }
}
