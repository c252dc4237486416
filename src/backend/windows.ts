import { invariant } from "../errors.ts";
import type { SlotId } from "../ids.ts";
import type { Plan, Segment } from "../model/plan.ts";
import type { PassHandle } from "./backend.ts";

/** A window whose first `rows` rows are to be committed. */
export interface KeptWindow {
  readonly slot: SlotId;
  /** At least 1. */
  readonly rows: number;
}

/** The windows that wait for their `keep`: at most one a slot. */
export class OpenWindows {
  /** By pass, its windows in the order of the plan. */
  readonly #passes = new Map<PassHandle, readonly Segment[]>();
  /** By slot, the pass whose window is open there. */
  readonly #slots = new Map<SlotId, PassHandle>();

  /** Notes a validated plan's windows. @throws InvariantError where it uses a slot with an open one */
  begin(handle: PassHandle, plan: Plan): void {
    for (const { stateSlot, nextSlot } of plan.segments) this.refuse(stateSlot, nextSlot);
    const windows = plan.segments.filter((segment) => segment.window);
    if (windows.length === 0) return;
    this.#passes.set(handle, windows);
    for (const { stateSlot } of windows) this.#slots.set(stateSlot, handle);
  }

  /** @throws InvariantError where one of these slots has an open window */
  refuse(...slots: readonly SlotId[]): void {
    const open = slots.find((slot) => this.#slots.has(slot));
    invariant(open === undefined, `slot ${open} has a window that waits for its keep`);
  }

  /** Closes a pass's windows; returns those of which a row is committed and that were not dropped. */
  close(handle: PassHandle, rows: readonly number[]): KeptWindow[] {
    const windows = this.#passes.get(handle);
    invariant(windows !== undefined, `pass ${handle} has no open window`);
    invariant(rows.length === windows.length, `${rows.length} keeps of ${windows.length} windows`);
    rows.forEach((count, index) => {
      const inside = Number.isInteger(count) && count >= 0 && count <= windows[index]!.rows;
      invariant(inside, `a keep of ${count} of ${windows[index]!.rows} rows`);
    });
    this.#passes.delete(handle);
    const open = windows.map(({ stateSlot }) => this.#slots.get(stateSlot) === handle);
    for (const { stateSlot } of windows.filter((_, index) => open[index])) {
      this.#slots.delete(stateSlot);
    }
    return windows
      .map(({ stateSlot }, index) => ({ slot: stateSlot, rows: open[index] ? rows[index]! : 0 }))
      .filter((window) => window.rows > 0);
  }

  /** Forgets a slot's window: the slot begins anew, or is given back. */
  drop(slot: SlotId): void {
    const handle = this.#slots.get(slot);
    if (handle === undefined) return;
    this.#slots.delete(slot);
    // With its last window a pass needs no keep, and most callers give none.
    const windows = this.#passes.get(handle)!;
    if (windows.every(({ stateSlot }) => this.#slots.get(stateSlot) !== handle)) {
      this.#passes.delete(handle);
    }
  }
}
