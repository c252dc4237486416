import { invariant } from "../errors.ts";
import type { SlotId } from "../ids.ts";
import type { Plan, Segment } from "../model/plan.ts";
import type { PassHandle } from "./backend.ts";

/** A window of which a path is to be committed. */
export interface KeptWindow {
  readonly slot: SlotId;
  readonly segment: Segment;
  /** Its rows, the root first; at least one. */
  readonly path: readonly number[];
  /** Which of the pass's draws has the logits that the slot keeps now: the path's last row's. */
  readonly draw: number | null;
}

/** Whether a kept path is the window's first rows, so that its KV rows lie where they belong. */
export const isPrefix = (path: readonly number[]): boolean =>
  path.every((row, depth) => row === depth);

/** The path of a window's first rows. */
export const firstRows = (rows: number): number[] => Array.from({ length: rows }, (_, row) => row);

interface OpenPass {
  /** In the order of the plan. */
  readonly windows: readonly Segment[];
  /**
   * By row of the pass, the windows' draws that keep their logits, which stay where the pass left them
   * until the next one.
   */
  readonly draws: ReadonlyMap<number, number>;
}

/** The windows that wait for their `keep`: at most one a slot. */
export class OpenWindows {
  readonly #passes = new Map<PassHandle, OpenPass>();
  /** By slot, the pass whose window is open there. */
  readonly #slots = new Map<SlotId, PassHandle>();

  /**
   * Notes a validated plan's windows.
   * @throws InvariantError where it uses a slot with an open one, or while one keeps its logits
   */
  begin(handle: PassHandle, plan: Plan): void {
    for (const { stateSlot, nextSlot } of plan.segments) this.refuse(stateSlot, nextSlot);
    for (const [pass, { draws }] of this.#passes) {
      invariant(draws.size === 0, `a pass before the keep of pass ${pass}, which keeps logits`);
    }
    const windows = plan.segments.filter((segment) => segment.window);
    if (windows.length === 0) return;
    const draws = new Map<number, number>();
    plan.draws.forEach(({ row, keepLogits }, index) => {
      if (keepLogits && windows.some((window) => holds(window, row))) draws.set(row, index);
    });
    this.#passes.set(handle, { windows, draws });
    for (const { stateSlot } of windows) this.#slots.set(stateSlot, handle);
  }

  /** @throws InvariantError where one of these slots has an open window */
  refuse(...slots: readonly SlotId[]): void {
    const open = slots.find((slot) => this.#slots.has(slot));
    invariant(open === undefined, `slot ${open} has a window that waits for its keep`);
  }

  /** Closes a pass's windows; returns those of which a row is committed and that were not dropped. */
  close(handle: PassHandle, paths: readonly (readonly number[])[]): KeptWindow[] {
    const pass = this.#passes.get(handle);
    invariant(pass !== undefined, `pass ${handle} has no open window`);
    const { windows, draws } = pass;
    invariant(
      paths.length === windows.length,
      `${paths.length} keeps of ${windows.length} windows`,
    );
    paths.forEach((path, index) => {
      checkPath(windows[index]!, path);
    });
    this.#passes.delete(handle);
    const open = windows.map(({ stateSlot }) => this.#slots.get(stateSlot) === handle);
    for (const { stateSlot } of windows.filter((_, index) => open[index])) {
      this.#slots.delete(stateSlot);
    }
    return windows
      .map((segment, index) => {
        const path = paths[index]!;
        const draw = draws.get(segment.firstRow + (path.at(-1) ?? 0)) ?? null;
        return { slot: segment.stateSlot, segment, path, draw };
      })
      .filter(({ path }, index) => open[index] && path.length > 0);
  }

  /** Forgets a slot's window: the slot begins anew, or is given back. */
  drop(slot: SlotId): void {
    const handle = this.#slots.get(slot);
    if (handle === undefined) return;
    this.#slots.delete(slot);
    // With its last window a pass needs no keep, and most callers give none.
    const { windows } = this.#passes.get(handle)!;
    if (windows.every(({ stateSlot }) => this.#slots.get(stateSlot) !== handle)) {
      this.#passes.delete(handle);
    }
  }
}

const holds = ({ firstRow, rows }: Segment, row: number): boolean =>
  row >= firstRow && row < firstRow + rows;

/** @throws InvariantError unless each row of the path is the parent of the next, from the root on */
function checkPath({ rows, parents }: Segment, path: readonly number[]): void {
  path.forEach((row, depth) => {
    const parent = parents && row >= 0 && row < rows ? parents[row] : row - 1;
    const follows = parent === (depth === 0 ? -1 : path[depth - 1]) && row < rows;
    invariant(follows, `a keep of rows ${path.join(", ")} of a window of ${rows}`);
  });
}
