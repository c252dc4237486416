import { expect, test } from "vitest";
import type { Backend } from "../backend/backend.ts";
import { FakeBackend } from "../backend/fake/fake.ts";
import { ReferenceBackend } from "../backend/reference/reference.ts";
import { pageId, slotId } from "../ids.ts";
import { planPass } from "../model/plan.ts";
import { tinyShape } from "../model/tiny-shape.ts";
import { randomWeights } from "../weights/random.ts";
import { numericsProbe } from "./numerics-probe.ts";

const shape = tinyShape();
const sizes = { slots: 1, pages: 2, rowsMax: 64, drawsMax: 1 };
const fake = (changes: Partial<typeof sizes> = {}) =>
  new FakeBackend({ ...sizes, ...changes, shape });
const reference = (seed: number, rowsMax = 64): Promise<Backend> => {
  const weights = randomWeights(shape, { seed, bits: 4, groupSize: 32 });
  return ReferenceBackend.open({ ...sizes, rowsMax, weights, taps: [] });
};

test("fake: the probe is the same every time, however it is cut, and gives its slot back", async () => {
  const backend = fake();
  const probe = await numericsProbe(backend);
  expect(probe).toMatch(/^[0-9a-f]{16}$/);
  const cuts = [fake({ rowsMax: 80 }), fake({ rowsMax: 79 }), fake({ rowsMax: 7 })];
  for (const other of [backend, ...cuts]) {
    expect(await numericsProbe(other)).toBe(probe);
    expect(other.openSlots.size).toBe(0);
  }
});

test("fake: without two pages there is none", async () => {
  expect(await numericsProbe(fake({ pages: 1 }))).toBe("none");
});

test("fake: where a pass fails, the slot is given back", async () => {
  const fault = () => {
    throw new Error("broken");
  };
  const backend = new FakeBackend({ ...sizes, shape, fault });
  await expect(numericsProbe(backend)).rejects.toThrow("broken");
  expect(backend.openSlots.size).toBe(0);
});

test("reference: equal for the same weights, after other work too; different for others", async () => {
  const [backend, same, other] = await Promise.all([reference(1), reference(1, 33), reference(2)]);
  const probe = await numericsProbe(backend);
  expect(await numericsProbe(same)).toBe(probe);
  expect(await numericsProbe(other)).not.toBe(probe);
  const slot = slotId(0);
  const work = { ids: [7, 8], start: 0, stateSlot: slot, nextSlot: slot, pages: [pageId(1)] };
  backend.open(slot);
  await backend.read(backend.prefill(planPass([{ ...work, draw: "last", candidates: 1 }])));
  backend.release(slot);
  expect(await numericsProbe(backend)).toBe(probe);
});
