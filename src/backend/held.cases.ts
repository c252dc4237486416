import { expect, test } from "vitest";
import { InvariantError } from "../errors.ts";
import { type PageId, pageId, slotId, type TokenId } from "../ids.ts";
import { pageRows } from "../limits.ts";
import { planPass, type SegmentRequest } from "../model/plan.ts";
import { stateFingerprint } from "../state/fingerprint.ts";
import type { Backend, HeldState } from "./backend.ts";
import {
  type BackendUnderTest,
  feed,
  pagesOf,
  printOf,
  prompt,
  segment,
  sizes,
} from "./suite.cases.ts";

const inWindow: Partial<SegmentRequest> = { window: true, draw: "none", keepLogits: false };

/** The pages of a fork at `rows`: full ones are shared, the one that is not is copied. */
function forkPages(backend: Backend, from: number, to: number, rows: number): PageId[] {
  const full = Math.floor(rows / pageRows);
  const theirs = pagesOf(from);
  const own = pagesOf(to);
  if (rows % pageRows > 0) backend.copyPage(theirs[full]!, own[full]!);
  return [...theirs.slice(0, full), ...own.slice(full)];
}

/** What a stream of just these tokens comes to, in a slot of its own. */
async function fromScratch(backend: Backend, slot: number, ids: readonly TokenId[]) {
  backend.open(slotId(slot));
  const print = await feed(backend, slot, ids, 64);
  backend.release(slotId(slot));
  return print;
}

/** Feeds without waiting: what comes next must keep the order itself. */
function give(backend: Backend, requests: readonly SegmentRequest[]): void {
  void backend.prefill(planPass(requests));
}

/** Held states, what resumes from them, and copies of pages. */
export function heldCases(under: BackendUnderTest): void {
  const { name } = under;

  test.each([1, 2, 63, 64, 65, 128])(
    `${name}: a fork at row %i and its origin equal streams from scratch`,
    async (rows) => {
      await using backend = await under.open(sizes);
      const trunk = prompt.slice(0, rows);
      const origin = prompt.slice(rows, rows + 10);
      const branch = prompt.slice(20, 35);
      const expected = [
        await fromScratch(backend, 2, [...trunk, ...origin]),
        await fromScratch(backend, 2, [...trunk, ...branch]),
      ];
      backend.open(slotId(0));
      await feed(backend, 0, trunk, 64);
      using held = await backend.hold(slotId(0));
      // The origin goes on in the page that the fork takes its first rows of.
      give(backend, [segment(0, rows, origin.slice(0, 4))]);
      backend.open(slotId(1));
      backend.resume(slotId(1), held);
      const pages = forkPages(backend, 0, 1, rows);
      give(backend, [segment(0, rows + 4, origin.slice(4)), segment(1, rows, branch, { pages })]);
      const ends = [origin.length, branch.length];
      for (const [slot, own] of [pagesOf(0), pages].entries()) {
        const snapshot = await backend.save(slotId(slot), own, rows + ends[slot]!);
        expect(stateFingerprint(snapshot), `slot ${slot}`).toBe(expected[slot]);
      }
    },
  );

  test(`${name}: held states are resumed in any order, as often as asked`, async () => {
    await using backend = await under.open(sizes);
    const whole = await fromScratch(backend, 2, prompt.slice(0, 80));
    const other = await fromScratch(backend, 2, [...prompt.slice(0, 70), ...prompt.slice(0, 9)]);
    backend.open(slotId(0));
    const states: HeldState[] = [];
    const ends = [64, 65, 70];
    for (const [index, end] of ends.entries()) {
      const start = ends[index - 1] ?? 0;
      give(backend, [segment(0, start, prompt.slice(start, end))]);
      states.push(await backend.hold(slotId(0)));
    }
    for (const index of [0, 1, 2, 2, 0, 1]) {
      backend.resume(slotId(0), states[index]!);
      const end = ends[index]!;
      expect((await backend.save(slotId(0), pagesOf(0), end)).logits, `row ${end}`).toBeNull();
      give(backend, [segment(0, end, prompt.slice(end, 80))]);
      expect(await printOf(backend, 0, 80), `row ${end}`).toBe(whole);
    }
    backend.resume(slotId(0), states[2]!);
    give(backend, [segment(0, 70, prompt.slice(0, 9))]);
    expect(await printOf(backend, 0, 79)).toBe(other);
  });

  test(`${name}: a held state stays as it is, whatever its slot goes on to`, async () => {
    await using backend = await under.open(sizes);
    backend.open(slotId(0));
    await feed(backend, 0, prompt.slice(0, 70), 64);
    const snapshot = { ...(await backend.save(slotId(0), pagesOf(0), 70)), logits: null };
    using held = await backend.hold(slotId(0));
    give(backend, [segment(0, 70, prompt.slice(70, 80))]);
    backend.release(slotId(0));
    backend.open(slotId(0));
    const pages = pagesOf(0);
    const saving = backend.save(held, pages, 70);
    pages.fill(pageId(11));
    const saved = await saving;
    expect(saved).toEqual(snapshot);
    // A snapshot is its owner's, who may write to it.
    saved.state.fill(1);
    saved.history.fill(1);
    expect(await backend.save(held, pagesOf(0), 70)).toEqual(snapshot);
  });

  test.each(["copy", "hold"])(`${name}: what was kept before counts for a %s`, async (first) => {
    await using backend = await under.open(sizes);
    // Two branches that take turns: the rows of the second move when they are kept.
    const parents = [-1, 0, 0, 1, 2, 3, 4];
    const path = [0, 2, 4, 6];
    const ids = parents.map((_, row) => (row * 37 + 20) % 300);
    const trunk = prompt.slice(0, 62);
    const chain = [...trunk, ...path.map((row) => ids[row]!)];
    const expected = await fromScratch(backend, 2, [...chain, 7]);
    for (const slot of [0, 1]) {
      backend.open(slotId(slot));
      await feed(backend, slot, trunk, 64);
    }
    const windows = planPass([
      segment(0, trunk.length, ids, { ...inWindow, parents }),
      segment(1, trunk.length, [8, 9], inWindow),
    ]);
    backend.keep(backend.verify(windows), [path, [0]]);
    const copies = pagesOf(1).slice(2);
    const copy = () => {
      for (const [index, page] of copies.entries()) backend.copyPage(pagesOf(0)[index]!, page);
    };
    if (first === "copy") copy();
    using held = await backend.hold(slotId(0));
    if (first === "hold") copy();
    backend.resume(slotId(1), held);
    give(backend, [segment(1, chain.length, [7], { pages: copies })]);
    const snapshot = await backend.save(slotId(1), copies, chain.length + 1);
    expect(stateFingerprint(snapshot)).toBe(expected);
    const kept = await backend.save(slotId(0), pagesOf(0), chain.length);
    expect(await backend.save(held, copies, chain.length)).toEqual(kept);
  });

  test(`${name}: a page is copied whole, between the passes around it`, async () => {
    await using backend = await under.open(sizes);
    backend.open(slotId(0));
    backend.open(slotId(1));
    const beside = await feed(backend, 1, prompt.slice(80, 150), 64);
    const [page, copy] = [pagesOf(0)[0]!, pagesOf(1)[3]!];
    give(backend, [segment(0, 0, prompt.slice(0, 64))]);
    backend.copyPage(page, copy);
    backend.release(slotId(0));
    backend.open(slotId(0));
    give(backend, [segment(0, 0, prompt.slice(64, 128))]);
    const copied = await backend.save(slotId(0), [copy], 64);
    const written = await backend.save(slotId(0), [page], 64);
    backend.open(slotId(2));
    await feed(backend, 2, prompt.slice(0, 64), 64);
    const { keys, values } = await backend.save(slotId(2), pagesOf(2), 64);
    expect([copied.keys, copied.values]).toEqual([keys, values]);
    expect(written.keys).not.toEqual(keys);
    expect(await printOf(backend, 1, 70)).toBe(beside);
  });

  test(`${name}: a slot with an open window is neither held nor resumed`, async () => {
    await using backend = await under.open(sizes);
    backend.open(slotId(0));
    backend.open(slotId(1));
    using fresh = await backend.hold(slotId(1));
    const handle = backend.verify(planPass([segment(0, 0, [1, 2], inWindow)]));
    await expect(backend.hold(slotId(0))).rejects.toThrow(/slot 0 has a window/);
    expect(() => backend.resume(slotId(0), fresh)).toThrow(/slot 0 has a window/);
    // Other slots, and states that were held before, are free.
    backend.resume(slotId(1), fresh);
    expect((await backend.save(fresh, [], 0)).rows).toBe(0);
    backend.keep(handle, [[0, 1]]);
    backend.resume(slotId(0), fresh);
    give(backend, [segment(0, 0, [1, 2]), segment(1, 0, [1, 2])]);
    expect(await printOf(backend, 0, 2)).toBe(await printOf(backend, 1, 2));
  });

  test(`${name}: a held state that was disposed of is refused, and was good until then`, async () => {
    await using backend = await under.open(sizes);
    const expected = await fromScratch(backend, 2, prompt.slice(0, 20));
    for (const slot of [0, 1]) backend.open(slotId(slot));
    await feed(backend, 0, prompt.slice(0, 12), 64);
    const snapshot = { ...(await backend.save(slotId(0), pagesOf(0), 12)), logits: null };
    const held = await backend.hold(slotId(0));
    backend.resume(slotId(1), held);
    const pages = forkPages(backend, 0, 1, 12);
    const saving = backend.save(held, pages, 12);
    held[Symbol.dispose]();
    held[Symbol.dispose]();
    // Another may take its memory at once.
    give(backend, [segment(0, 12, prompt.slice(50, 60))]);
    using other = await backend.hold(slotId(0));
    give(backend, [segment(1, 12, prompt.slice(12, 20), { pages })]);
    expect(await printOf(backend, 1, 20)).toBe(expected);
    expect(await saving).toEqual(snapshot);
    expect(() => backend.resume(slotId(1), held)).toThrow(InvariantError);
    await expect(backend.save(held, [], 0)).rejects.toThrow(InvariantError);
    await using elsewhere = await under.open(sizes);
    elsewhere.open(slotId(0));
    expect(() => elsewhere.resume(slotId(0), other)).toThrow(InvariantError);
  });
}
