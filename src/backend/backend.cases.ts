import { expect, test } from "vitest";
import { NonFiniteLogitsError } from "../errors.ts";
import { pageId, slotId } from "../ids.ts";
import { planPass } from "../model/plan.ts";
import { stateFingerprint } from "../state/fingerprint.ts";
import { withKnownTokens } from "../weights/known-tokens.ts";
import type { Weights } from "../weights/weights.ts";
import { withNanToken } from "./broken.cases.ts";
import { heldCases } from "./held.cases.ts";
import { type BackendUnderTest, feed, pagesOf, prompt, segment, sizes } from "./suite.cases.ts";
import { treeCases } from "./trees.cases.ts";
import { windowCases } from "./windows.cases.ts";

/** Not a multiple of what any kernel takes at once. */
const knownTokens = 201;

/** Runs in every implementation's test file. */
export function backendCases(under: BackendUnderTest): void {
  const { name } = under;

  test(`${name}: state, KV and logits are the same in chunks of every size`, async () => {
    await using backend = await under.open(sizes);
    backend.open(slotId(0));
    const whole = await feed(backend, 0, prompt, 64);
    for (const chunk of [1, 3, 16, 63]) {
      backend.release(slotId(0));
      backend.open(slotId(0));
      expect(await feed(backend, 0, prompt, chunk), `chunks of ${chunk}`).toBe(whole);
    }
    backend.release(slotId(0));
  });

  test(`${name}: prefill and verify agree, so a reply's rows equal a prompt's`, async () => {
    await using backend = await under.open(sizes);
    backend.open(slotId(0));
    await feed(backend, 0, prompt.slice(0, 40), 40);
    for (let at = 40; at < 50; at++) {
      await backend.read(backend.verify(planPass([segment(0, at, [prompt[at]!])])));
    }
    const decoded = stateFingerprint(await backend.save(slotId(0), pagesOf(0), 50));
    backend.open(slotId(1));
    expect(await feed(backend, 1, prompt.slice(0, 50), 64)).toBe(decoded);
  });

  test(`${name}: streams that share a pass equal streams alone`, async () => {
    await using backend = await under.open(sizes);
    const own = [prompt.slice(0, 30), prompt.slice(20, 90), prompt.slice(60, 63)];
    const alone: string[] = [];
    for (const ids of own) {
      backend.open(slotId(0));
      alone.push(await feed(backend, 0, ids, 64));
      backend.release(slotId(0));
    }
    for (const slot of [0, 1, 2]) backend.open(slotId(slot));
    // Rounds of uneven windows, in an order that changes.
    const fed = [0, 0, 0];
    for (let round = 0; fed.some((rows, slot) => rows < own[slot]!.length); round++) {
      const live = [2, 0, 1].filter((slot) => fed[slot]! < own[slot]!.length);
      if (round % 2) live.reverse();
      const segments = live.map((slot) =>
        segment(
          slot,
          fed[slot]!,
          own[slot]!.slice(fed[slot], fed[slot]! + 1 + ((round + slot) % 4)),
        ),
      );
      await backend.read(backend.verify(planPass(segments)));
      segments.forEach((part, index) => {
        fed[live[index]!]! += part.ids.length;
      });
    }
    for (const slot of [0, 1, 2]) {
      const snapshot = await backend.save(slotId(slot), pagesOf(slot), own[slot]!.length);
      expect(stateFingerprint(snapshot), `slot ${slot}`).toBe(alone[slot]);
    }
  });

  test(`${name}: a moved state equals one that stayed, and the old slot is as it was`, async () => {
    await using backend = await under.open(sizes);
    backend.open(slotId(0));
    await feed(backend, 0, prompt.slice(0, 10), 10);
    const before = await backend.save(slotId(0), pagesOf(0), 10);
    backend.open(slotId(1));
    const move = { nextSlot: slotId(1) };
    await backend.read(backend.prefill(planPass([segment(0, 10, prompt.slice(10, 14), move)])));
    const moved = await backend.save(slotId(1), pagesOf(0), 14);
    const after = await backend.save(slotId(0), pagesOf(0), 10);
    expect(after.state).toEqual(before.state);
    expect(after.history).toEqual(before.history);
    backend.open(slotId(2));
    expect(await feed(backend, 2, prompt.slice(0, 14), 14)).toBe(stateFingerprint(moved));
  });

  test(`${name}: a slot is clean when it is opened again`, async () => {
    await using backend = await under.open(sizes);
    backend.open(slotId(0));
    const fresh = await feed(backend, 0, prompt.slice(0, 20), 20);
    await feed(backend, 0, prompt.slice(50, 120), 64);
    backend.release(slotId(0));
    backend.open(slotId(0));
    expect(await feed(backend, 0, prompt.slice(0, 20), 20)).toBe(fresh);
  });

  test(`${name}: a restored snapshot goes on as the original does`, async () => {
    await using backend = await under.open(sizes);
    backend.open(slotId(0));
    await feed(backend, 0, prompt.slice(0, 70), 64);
    const snapshot = await backend.save(slotId(0), pagesOf(0), 70);
    const goOn = async (slot: number) => {
      const plan = planPass([segment(slot, 70, prompt.slice(70, 80), { candidates: 0 })]);
      return await backend.read(backend.verify(plan));
    };
    const original = await goOn(0);
    backend.open(slotId(2));
    // A caller's lists of pages are its own again as soon as a call returns.
    const pages = pagesOf(2);
    backend.restore(slotId(2), pages, snapshot);
    pages.fill(pageId(0));
    const again = pagesOf(2);
    const saved = backend.save(slotId(2), again, 70);
    again.fill(pageId(0));
    expect(await saved).toEqual(snapshot);
    expect(await goOn(2)).toEqual(original);
  });

  test(`${name}: kept logits belong to the state that made them`, async () => {
    await using backend = await under.open(sizes);
    backend.open(slotId(0));
    await feed(backend, 0, prompt.slice(0, 5), 5);
    const logitsOf = async (slot: number, rows: number) =>
      (await backend.save(slotId(slot), pagesOf(0), rows)).logits;
    expect(await logitsOf(0, 5)).toHaveLength(300);
    const silent = { keepLogits: false };
    await backend.read(backend.verify(planPass([segment(0, 5, [1], silent)])));
    expect(await logitsOf(0, 6)).toBeNull();
    await backend.read(backend.verify(planPass([segment(0, 6, [1])])));
    const saved = backend.save(slotId(0), pagesOf(0), 7);
    backend.release(slotId(0));
    expect((await saved).logits).toHaveLength(300);
    backend.open(slotId(0));
    expect(await logitsOf(0, 0)).toBeNull();
  });

  test(`${name}: draws are ordered, and fewer candidates are the first of more`, async () => {
    await using backend = await under.open(sizes);
    backend.open(slotId(0));
    const rows = prompt.slice(0, 6);
    const all = planPass([segment(0, 0, rows, { draw: "all", candidates: 0 })]);
    const { draws } = await backend.read(backend.prefill(all));
    expect(draws).toHaveLength(6);
    backend.release(slotId(0));
    backend.open(slotId(0));
    const few = planPass([segment(0, 0, rows, { candidates: 3 })]);
    const last = (await backend.read(backend.prefill(few))).draws[0]!;
    const whole = draws[5]!;
    if (last instanceof Error || whole instanceof Error) throw new Error("not finite");
    expect(whole.ids).toHaveLength(300);
    expect([...last.ids]).toEqual([...whole.ids.slice(0, 3)]);
    for (let at = 1; at < 300; at++) {
      expect(whole.logits[at]).toBeLessThanOrEqual(whole.logits[at - 1]!);
    }
  });

  windowCases(under);
  treeCases(under);
  heldCases(under);

  test(`${name}: refuses plans that alias, and handles that were read`, async () => {
    await using backend = await under.open(sizes);
    backend.open(slotId(0));
    const twice = planPass([segment(0, 0, [1]), segment(0, 1, [2])]);
    expect(() => backend.verify(twice)).toThrow(/written twice/);
    expect(() => backend.verify(planPass([segment(0, 0, [300])]))).toThrow(/vocabulary/);
    const handle = backend.verify(planPass([segment(0, 0, [1])]));
    await backend.read(handle);
    await expect(backend.read(handle)).rejects.toThrow(/read before/);
  });

  const { openChanged } = under;
  if (openChanged) {
    test(`${name}: rows of the vocabulary that no token has are never drawn`, async () => {
      const rows = prompt.slice(0, 3).map((id) => id % knownTokens);
      const drawsOf = async (change: (weights: Weights) => Weights) => {
        await using backend = await openChanged(sizes, change);
        backend.open(slotId(0));
        const plan = planPass([segment(0, 0, rows, { draw: "all", candidates: 0 })]);
        const whole = await backend.read(backend.prefill(plan));
        const few = await backend.read(backend.verify(planPass([segment(0, 3, [5])])));
        const state = await backend.save(slotId(0), pagesOf(0), 4);
        expect(state.logits).toHaveLength(backend.info.shape.vocabSize);
        return [...whole.draws, ...few.draws].map((draw) => {
          if (draw instanceof Error) throw draw;
          return [...draw.ids].map((id, at) => ({ id, logit: draw.logits[at] }));
        });
      };
      const all = await drawsOf((weights) => weights);
      const known = await drawsOf((weights) => withKnownTokens(weights, knownTokens));
      const kept = all.map((draw) => draw.filter(({ id }) => id < knownTokens));
      expect(known.slice(0, 3)).toEqual(kept.slice(0, 3));
      expect(known[3]!.slice(0, kept[3]!.length)).toEqual(kept[3]);
      // Some would have won.
      expect(all.some((draw) => draw[0]!.id >= knownTokens)).toBe(true);
    });

    test(`${name}: a row that isn't finite fails alone`, async () => {
      await using backend = await openChanged(sizes, withNanToken);
      backend.open(slotId(0));
      backend.open(slotId(1));
      const { draws } = await backend.read(
        backend.verify(planPass([segment(0, 0, [7]), segment(1, 0, [8])])),
      );
      expect(draws[0]).toBeInstanceOf(NonFiniteLogitsError);
      expect(draws[1]).not.toBeInstanceOf(Error);
    });
  }
}
