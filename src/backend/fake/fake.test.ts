import { expect, test } from "vitest";
import { pageId, slotId, type TokenId } from "../../ids.ts";
import { tinyDrafterShape } from "../../model/drafter-shape.ts";
import { planPass, type SegmentRequest } from "../../model/plan.ts";
import { tinyShape } from "../../model/tiny-shape.ts";
import { backendCases } from "../backend.cases.ts";
import type { HeldState } from "../backend.ts";
import { FakeBackend } from "./fake.ts";

const shape = tinyShape();
const small = { shape, slots: 1, pages: 2, rowsMax: 8, drawsMax: 1 };

backendCases({
  name: "fake",
  open: async (sizes) => new FakeBackend({ ...sizes, shape }),
});

/** Rows of slot 0. */
const rowsOf = (start: number, ids: readonly TokenId[], changes: Partial<SegmentRequest> = {}) =>
  planPass([
    {
      ids,
      start,
      stateSlot: slotId(0),
      nextSlot: slotId(0),
      pages: [pageId(0)],
      draw: "last",
      candidates: 1,
      ...changes,
    },
  ]);

test("fake: a lost device fails every later pass and says so", async () => {
  const backend = new FakeBackend(small);
  backend.open(slotId(0));
  backend.lose();
  await expect(backend.read(backend.verify(rowsOf(0, [1])))).rejects.toThrow(/lost/);
  expect((await backend.lost).message).toMatch(/lost/);
});

test("fake: a lost device holds nothing more, and what it held can be disposed of", async () => {
  const backend = new FakeBackend(small);
  backend.open(slotId(0));
  const held = await backend.hold(slotId(0));
  const holding = backend.hold(slotId(0));
  backend.lose();
  await expect(holding).rejects.toThrow(/lost/);
  await expect(backend.hold(slotId(0))).rejects.toThrow(/lost/);
  expect(() => backend.resume(slotId(0), held)).toThrow(/lost/);
  expect(() => backend.copyPage(pageId(0), pageId(1))).toThrow(/lost/);
  expect(backend.heldStates.size).toBe(1);
  held[Symbol.dispose]();
  held[Symbol.dispose]();
  expect(backend.heldStates.size).toBe(0);
});

test("fake: a slot that isn't open is neither held nor resumed", async () => {
  const backend = new FakeBackend(small);
  await expect(backend.hold(slotId(0))).rejects.toThrow(/slot 0 is not open/);
  backend.open(slotId(0));
  using held = await backend.hold(slotId(0));
  backend.release(slotId(0));
  expect(() => backend.resume(slotId(0), held)).toThrow(/slot 0 is not open/);
});

test("fake: a slot that is fed before its hold resolves is held wrong", async () => {
  const backend = new FakeBackend(small);
  backend.open(slotId(0));
  using fresh = await backend.hold(slotId(0));
  const holding = backend.hold(slotId(0));
  await backend.read(backend.verify(rowsOf(0, [1])));
  using fed = await holding;
  const stateOf = async (held: HeldState) => (await backend.save(held, [], 0)).state;
  expect(await stateOf(fed)).not.toEqual(await stateOf(fresh));
});

test("fake: a copied page brings its context, a resumed state no features", async () => {
  const drafter = { weights: { shape: tinyDrafterShape(shape) } };
  const backend = new FakeBackend({ ...small, drafter });
  backend.open(slotId(0));
  const none = { draw: "none" } as const;
  await backend.read(backend.verify(rowsOf(0, [1, 2, 3])));
  backend.extend(rowsOf(0, [0, 0], none));
  using held = await backend.hold(slotId(0));
  backend.copyPage(pageId(0), pageId(1));
  backend.resume(slotId(0), held);
  const copy = { pages: [pageId(1)] };
  const block = (start: number) => rowsOf(start, [4, 5], { ...copy, draw: "block" });
  await backend.read(backend.draft(block(2)));
  // Too late for the third row, whose features are gone.
  backend.extend(rowsOf(2, [0], { ...none, ...copy }));
  await expect(backend.read(backend.draft(block(3)))).rejects.toThrow(/context is wrong at 2/);
});
