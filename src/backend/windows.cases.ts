import { expect, test } from "vitest";
import { slotId, type TokenId } from "../ids.ts";
import { windowRowsMax } from "../limits.ts";
import { planPass, type SegmentRequest } from "../model/plan.ts";
import { stateFingerprint } from "../state/fingerprint.ts";
import type { Backend, PassResult, Snapshot } from "./backend.ts";
import { type BackendUnderTest, feed, pagesOf, prompt, segment, sizes } from "./suite.cases.ts";

const wide = { ...sizes, drawsMax: 3 * windowRowsMax };
/** Tokens before the window: fewer than the convolution looks back, and up to both sides of a page's edge. */
const historyRows = [0, 1, 2, 50, 63];
const widths = [1, 2, 3, 4, 7, 8, 15, windowRowsMax];

const draws: Partial<SegmentRequest> = { draw: "all", candidates: 0, keepLogits: false };
const inWindow: Partial<SegmentRequest> = { ...draws, window: true };

const rowsFrom = (start: number, rows: number): TokenId[] => prompt.slice(start, start + rows);

/** State, history and KV of the first `rows` positions; a window keeps no logits. */
async function printOf(backend: Backend, slot: number, rows: number): Promise<string> {
  const snapshot = await backend.save(slotId(slot), pagesOf(slot), rows);
  return stateFingerprint({ ...snapshot, logits: null });
}

/** What a chain makes of the prompt from a snapshot on, row by row. */
interface Chain {
  /** After 0, 1, … rows. */
  readonly prints: readonly string[];
  readonly draws: readonly PassResult["draws"][number][];
}

async function chainOf(backend: Backend, slot: number, from: Snapshot): Promise<Chain> {
  backend.restore(slotId(slot), pagesOf(slot), from);
  const prints = [await printOf(backend, slot, from.rows)];
  const drawn: Chain["draws"][number][] = [];
  for (let row = from.rows; row < from.rows + windowRowsMax; row++) {
    const plan = planPass([segment(slot, row, rowsFrom(row, 1), draws)]);
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
          backend.keep(handle, [kept]);
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
        backend.keep(
          handle,
          kept.filter((_, at) => slots[at] !== chain),
        );
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
      backend.keep(handle, [kept]);
      at += kept;
    }
    expect(await printOf(backend, 1, 100)).toBe(chain);
  });

  test(`${name}: passes of other slots may come before a keep`, { timeout: 240_000 }, async () => {
    await using backend = await under.open(wide);
    for (const slot of [0, 1, 2]) backend.open(slotId(slot));
    await feed(backend, 0, prompt.slice(0, 20), 64);
    const zero = await backend.save(slotId(0), pagesOf(0), 20);
    const chain = await chainOf(backend, 0, zero);
    backend.restore(slotId(0), pagesOf(0), zero);
    backend.restore(slotId(1), pagesOf(1), zero);
    const first = backend.verify(planPass([segment(0, 20, rowsFrom(20, 9), inWindow)]));
    const second = backend.verify(planPass([segment(1, 20, rowsFrom(20, 5), inWindow)]));
    await feed(backend, 2, prompt.slice(0, 70), 32);
    backend.keep(second, [4]);
    backend.keep(first, [6]);
    expect(await printOf(backend, 0, 26)).toBe(chain.prints[6]);
    backend.release(slotId(0));
    backend.open(slotId(0));
    const moved = await backend.save(slotId(1), pagesOf(1), 24);
    backend.restore(slotId(0), pagesOf(0), { ...moved, logits: null });
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
    expect(() => backend.keep(handle, [4])).toThrow(/4 of 3 rows/);
    expect(() => backend.keep(handle, [0.5])).toThrow(/0.5 of 3 rows/);
    backend.keep(handle, [2]);
    expect(() => backend.keep(handle, [2])).toThrow(/no open window/);
    await backend.read(backend.verify(planPass([segment(0, 2, [1])])));
    backend.release(slotId(0));
    backend.open(slotId(0));
    const dropped = open();
    backend.release(slotId(0));
    backend.open(slotId(0));
    expect(() => backend.keep(dropped, [1])).toThrow(/no open window/);
    expect(await backend.save(slotId(0), pagesOf(0), 0)).toEqual(fresh);
    const both = backend.verify(
      planPass([segment(1, 0, [5, 6], inWindow), segment(0, 0, [7, 8], inWindow)]),
    );
    backend.release(slotId(1));
    backend.open(slotId(1));
    backend.keep(both, [2, 0]);
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
    const plan = planPass([segment(0, 4, rowsFrom(4, 2), inWindow)]);
    backend.keep(backend.verify(plan), [0]);
    expect(await logits()).toHaveLength(300);
    backend.keep(backend.verify(plan), [1]);
    expect(await logits()).toBeNull();
  });
}
