import { expect, test } from "vitest";
import { slotId, type TokenId } from "../ids.ts";
import { windowRowsMax } from "../limits.ts";
import { planPass, type SegmentRequest } from "../model/plan.ts";
import type { Backend, PassResult, Snapshot } from "./backend.ts";
import {
  type BackendUnderTest,
  feed,
  pagesOf,
  printOf,
  prompt,
  segment,
  sizes,
} from "./suite.cases.ts";
import { firstRows } from "./windows.ts";

const wide = { ...sizes, drawsMax: 3 * windowRowsMax };
/** Tokens before the window: fewer than the convolution looks back, and up to both sides of a page's edge. */
const historyRows = [0, 1, 2, 50, 63];
const widths = [1, 2, 3, 4, 7, 8, 15, windowRowsMax];

const draws: Partial<SegmentRequest> = { draw: "all", candidates: 0 };
const inWindow: Partial<SegmentRequest> = { ...draws, window: true };
/** A window whose kept rows leave no logits, so that other passes may come before its keep. */
const silent: Partial<SegmentRequest> = { ...inWindow, keepLogits: false };

const rowsFrom = (start: number, rows: number): TokenId[] => prompt.slice(start, start + rows);

/** What a chain makes of the prompt from a snapshot on, row by row. */
interface Chain {
  /** After 0, 1, … rows. */
  readonly prints: readonly string[];
  readonly draws: readonly PassResult["draws"][number][];
}

async function chainOf(
  backend: Backend,
  slot: number,
  from: Snapshot,
  changes: Partial<SegmentRequest> = draws,
): Promise<Chain> {
  backend.restore(slotId(slot), pagesOf(slot), from);
  const prints = [await printOf(backend, slot, from.rows)];
  const drawn: Chain["draws"][number][] = [];
  for (let row = from.rows; row < from.rows + windowRowsMax; row++) {
    const plan = planPass([segment(slot, row, rowsFrom(row, 1), changes)]);
    drawn.push(...(await backend.read(backend.verify(plan))).draws);
    prints.push(await printOf(backend, slot, row + 1));
  }
  return { prints, draws: drawn };
}

/** Windows and their keeps. */
export function windowCases(under: BackendUnderTest): void {
  const { name } = under;

  test.each(historyRows)(
    `${name}: kept rows of a window after %i rows equal a chain of them`,
    {
      timeout: 240_000,
    },
    async (history) => {
      await using backend = await under.open(wide);
      backend.open(slotId(0));
      await feed(backend, 0, prompt.slice(0, history), 64);
      const start = await backend.save(slotId(0), pagesOf(0), history);
      const chain = await chainOf(backend, 0, start);
      for (const width of widths) {
        for (let kept = 0; kept <= width; kept++) {
          backend.restore(slotId(0), pagesOf(0), start);
          const plan = planPass([segment(0, history, rowsFrom(history, width), inWindow)]);
          const handle = backend.verify(plan);
          const result = await backend.read(handle);
          backend.keep(handle, [firstRows(kept)]);
          const label = `${kept} of ${width}`;
          expect(await printOf(backend, 0, history + kept), label).toBe(chain.prints[kept]);
          if (kept === 0) expect(result.draws, label).toEqual(chain.draws.slice(0, width));
        }
      }
    },
  );

  test(`${name}: several windows and a chain share a pass`, { timeout: 240_000 }, async () => {
    await using backend = await under.open(wide);
    const history = [5, 40, 62];
    const chains: Chain[] = [];
    const starts: Snapshot[] = [];
    for (const [slot, rows] of history.entries()) {
      backend.open(slotId(slot));
      await feed(backend, slot, prompt.slice(0, rows), 64);
      starts.push(await backend.save(slotId(slot), pagesOf(slot), rows));
      chains.push(await chainOf(backend, slot, starts[slot]!));
    }
    const part = (slot: number, rows: number, changes: Partial<SegmentRequest>) =>
      segment(slot, history[slot]!, rowsFrom(history[slot]!, rows), changes);
    for (const [slots, rows, keeps] of [
      [
        [0, 1, 2],
        [4, 9, 16],
        [4, 1, 11],
      ],
      [
        [2, 0, 1],
        [3, 1, 16],
        [0, 1, 2],
      ],
    ] as const) {
      for (const chain of [-1, ...slots]) {
        for (const slot of slots) backend.restore(slotId(slot), pagesOf(slot), starts[slot]!);
        const plan = planPass(
          slots.map((slot, at) => part(slot, rows[at]!, slot === chain ? draws : inWindow)),
        );
        const handle = backend.verify(plan);
        const result = await backend.read(handle);
        const kept = slots.map((slot, at) => (slot === chain ? rows[at]! : keeps[at]!));
        const paths = kept.filter((_, at) => slots[at] !== chain).map(firstRows);
        if (paths.length > 0) backend.keep(handle, paths);
        let draw = 0;
        for (const [at, slot] of slots.entries()) {
          const after = history[slot]! + kept[at]!;
          const label = `slot ${slot}, chain ${chain}`;
          expect(await printOf(backend, slot, after), label).toBe(chains[slot]!.prints[kept[at]!]);
          const drawn = result.draws.slice(draw, draw + rows[at]!);
          expect(drawn, label).toEqual(chains[slot]!.draws.slice(0, rows[at]));
          draw += rows[at]!;
        }
      }
    }
  });

  test(`${name}: rounds of windows, kept in part, end where a chain does`, {
    timeout: 240_000,
  }, async () => {
    await using backend = await under.open(wide);
    backend.open(slotId(0));
    backend.open(slotId(1));
    await feed(backend, 0, prompt.slice(0, 100), 64);
    const chain = await printOf(backend, 0, 100);
    let at = 0;
    for (let round = 0; at < 100; round++) {
      const width = Math.min(1 + ((round * 7) % windowRowsMax), 100 - at);
      const kept = round % 5 === 4 ? 0 : 1 + ((round * 3) % width);
      // The rows that are not kept hold tokens that the chain never sees.
      const ids = rowsFrom(at, width).map((id, row) => (row < kept ? id : (id + 1 + round) % 300));
      const handle = backend.verify(planPass([segment(1, at, ids, inWindow)]));
      // Nothing waits for the pass: keep follows in order.
      backend.keep(handle, [firstRows(kept)]);
      at += kept;
    }
    expect(await printOf(backend, 1, 100)).toBe(chain);
  });

  test(`${name}: passes of other slots may come before a keep`, { timeout: 240_000 }, async () => {
    await using backend = await under.open(wide);
    for (const slot of [0, 1, 2]) backend.open(slotId(slot));
    await feed(backend, 0, prompt.slice(0, 20), 64);
    const zero = await backend.save(slotId(0), pagesOf(0), 20);
    const chain = await chainOf(backend, 0, zero, { ...draws, keepLogits: false });
    backend.restore(slotId(0), pagesOf(0), zero);
    backend.restore(slotId(1), pagesOf(1), zero);
    const first = backend.verify(planPass([segment(0, 20, rowsFrom(20, 9), silent)]));
    const second = backend.verify(planPass([segment(1, 20, rowsFrom(20, 5), silent)]));
    await feed(backend, 2, prompt.slice(0, 70), 32);
    backend.keep(second, [firstRows(4)]);
    backend.keep(first, [firstRows(6)]);
    expect(await printOf(backend, 0, 26)).toBe(chain.prints[6]);
    backend.release(slotId(0));
    backend.open(slotId(0));
    const moved = await backend.save(slotId(1), pagesOf(1), 24);
    backend.restore(slotId(0), pagesOf(0), moved);
    expect(await printOf(backend, 0, 24)).toBe(chain.prints[4]);
  });

  test(`${name}: a slot with an open window is refused until its keep, or begins anew`, {
    timeout: 240_000,
  }, async () => {
    await using backend = await under.open(wide);
    backend.open(slotId(0));
    backend.open(slotId(1));
    const open = () => backend.verify(planPass([segment(0, 0, rowsFrom(0, 3), inWindow)]));
    const fresh = await backend.save(slotId(0), pagesOf(0), 0);
    const handle = open();
    const chain = planPass([segment(0, 0, [1])]);
    expect(() => backend.verify(chain)).toThrow(/slot 0 has a window/);
    const move = planPass([segment(1, 0, [1], { nextSlot: slotId(0) })]);
    expect(() => backend.prefill(move)).toThrow(/slot 0 has a window/);
    await expect(async () => backend.save(slotId(0), pagesOf(0), 0)).rejects.toThrow(/a window/);
    expect(() => backend.restore(slotId(0), pagesOf(0), fresh)).toThrow(/a window/);
    expect(() => backend.keep(handle, [])).toThrow(/0 keeps of 1/);
    for (const path of [firstRows(4), [1], [0, 2], [0, 0], [0, 1, 0], [-1], [0.5], [0, 0.5]]) {
      const label = `a keep of rows ${path.join(", ")} of a window of 3`;
      expect(() => backend.keep(handle, [path])).toThrow(label);
    }
    backend.keep(handle, [firstRows(2)]);
    expect(() => backend.keep(handle, [firstRows(2)])).toThrow(/no open window/);
    await backend.read(backend.verify(planPass([segment(0, 2, [1])])));
    backend.release(slotId(0));
    backend.open(slotId(0));
    const dropped = open();
    backend.release(slotId(0));
    backend.open(slotId(0));
    expect(() => backend.keep(dropped, [[0]])).toThrow(/no open window/);
    expect(await backend.save(slotId(0), pagesOf(0), 0)).toEqual(fresh);
    const both = backend.verify(
      planPass([segment(1, 0, [5, 6], inWindow), segment(0, 0, [7, 8], inWindow)]),
    );
    backend.release(slotId(1));
    backend.open(slotId(1));
    backend.keep(both, [firstRows(2), []]);
    expect((await backend.save(slotId(1), pagesOf(1), 0)).state).toEqual(fresh.state);
    expect((await backend.save(slotId(0), pagesOf(0), 0)).state).toEqual(fresh.state);
  });

  test(`${name}: kept logits go when a window's row is kept, and not before`, {
    timeout: 240_000,
  }, async () => {
    await using backend = await under.open(wide);
    backend.open(slotId(0));
    await feed(backend, 0, prompt.slice(0, 4), 4);
    const logits = async () => (await backend.save(slotId(0), pagesOf(0), 4)).logits;
    const plan = planPass([segment(0, 4, rowsFrom(4, 2), silent)]);
    backend.keep(backend.verify(plan), [[]]);
    expect(await logits()).toHaveLength(300);
    backend.keep(backend.verify(plan), [[0]]);
    expect(await logits()).toBeNull();
    // Rows that don't draw have none to keep.
    const undrawn = planPass([segment(0, 5, rowsFrom(5, 2), { ...inWindow, draw: "last" })]);
    backend.keep(backend.verify(undrawn), [[0, 1]]);
    expect(await logits()).toHaveLength(300);
    backend.keep(backend.verify(undrawn), [[0]]);
    expect(await logits()).toBeNull();
  });

  test(`${name}: a window that keeps logits is kept before the next pass`, {
    timeout: 240_000,
  }, async () => {
    await using backend = await under.open(wide);
    for (const slot of [0, 1, 2]) backend.open(slotId(slot));
    const windows = [segment(0, 0, [1, 2], inWindow), segment(1, 0, [3, 4], inWindow)];
    const next = planPass([segment(2, 0, [1])]);
    const handle = backend.verify(planPass(windows));
    expect(() => backend.verify(next)).toThrow(/keeps logits/);
    expect(() => backend.prefill(next)).toThrow(/keeps logits/);
    // A window that is dropped waits for nothing; the other one still does.
    backend.release(slotId(0));
    backend.open(slotId(0));
    expect(() => backend.verify(next)).toThrow(/keeps logits/);
    backend.keep(handle, [[], [0]]);
    await backend.read(backend.verify(next));
    expect((await backend.save(slotId(0), pagesOf(0), 0)).logits).toBeNull();
    expect((await backend.save(slotId(1), pagesOf(1), 1)).logits).toHaveLength(300);
  });
}
