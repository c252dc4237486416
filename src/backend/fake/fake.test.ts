import { expect, test } from "vitest";
import { slotId } from "../../ids.ts";
import { planPass } from "../../model/plan.ts";
import { tinyShape } from "../../model/tiny-shape.ts";
import { backendCases } from "../backend.cases.ts";
import { FakeBackend } from "./fake.ts";

const shape = tinyShape();

backendCases({
  name: "fake",
  open: async (sizes) => new FakeBackend({ ...sizes, shape }),
});

test("fake: a lost device fails every later pass and says so", async () => {
  const backend = new FakeBackend({ shape, slots: 1, pages: 1, rowsMax: 8, drawsMax: 1 });
  backend.open(slotId(0));
  backend.lose();
  const plan = planPass([
    {
      ids: [1],
      start: 0,
      stateSlot: slotId(0),
      nextSlot: slotId(0),
      pages: [0 as never],
      draw: "last",
      candidates: 1,
    },
  ]);
  await expect(backend.read(backend.verify(plan))).rejects.toThrow(/lost/);
  expect((await backend.lost).message).toMatch(/lost/);
});
