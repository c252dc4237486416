import { expect, test } from "vitest";
import { slotId } from "../../ids.ts";
import { isTree, planPass } from "../../model/plan.ts";
import { packPath, scansOf } from "./trees.ts";

const part = (slot: number, rows: number, parents: readonly number[] | null) => ({
  ids: new Array<number>(rows).fill(0),
  start: 0,
  stateSlot: slotId(slot),
  nextSlot: slotId(slot),
  pages: [],
  draw: "none" as const,
  candidates: 0,
  window: parents !== null,
  parents,
});

test("parents that say a chain are no tree", () => {
  expect([null, [-1], [-1, 0, 1], [-1, 0, 0]].map((parents) => isTree({ parents }))).toEqual([
    false,
    false,
    false,
    true,
  ]);
  const chains = planPass([part(0, 40, null), part(1, 3, [-1, 0, 1])]);
  expect(scansOf(chains)).toEqual([]);
});

test("a tree is scanned by its leaves, and each row is one scan's", () => {
  const plan = planPass([
    part(0, 40, null),
    part(1, 7, [-1, 0, 1, 0, 3, 1, 5]),
    part(2, 3, [-1, 0, 1]),
  ]);
  expect(scansOf(plan)).toEqual([
    { segment: 0, rows: 40, known: 0, leaf: null },
    { segment: 1, rows: 3, known: 0, leaf: 2 },
    { segment: 1, rows: 3, known: 1, leaf: 4 },
    { segment: 1, rows: 4, known: 2, leaf: 6 },
    { segment: 2, rows: 3, known: 0, leaf: null },
  ]);
});

test("a path of sixteen rows takes two words", () => {
  const all = Array.from({ length: 16 }, (_, row) => row);
  expect(packPath(all)).toEqual([0x76543210, 0xfedcba98]);
  expect(packPath([0, 3, 15])).toEqual([0xf30, 0]);
});
