import { expect, test } from "vitest";
import { NonFiniteLogitsError } from "../../errors.ts";
import { pageId, slotId } from "../../ids.ts";
import { planPass } from "../../model/plan.ts";
import { arithmeticsHere, missingGpu, tinyWeights } from "./gpu.cases.ts";
import { arithmeticCases, choice } from "./webgpu.cases.ts";
import { WebgpuBackend } from "./webgpu.ts";

/** Why this machine can't run these tests; null where it can. */
const reason = await missingGpu();
const arithmetics = reason === null ? await arithmeticsHere() : [];

if (!arithmetics.includes("f16")) {
  test.skip(`webgpu f16: ${reason ?? "the adapter has no f16"}`, () => {});
} else {
  arithmeticCases("f16");

  test("an input beyond f16 ends its row with an error", async () => {
    // The norm's weight makes the first projection's input about a million.
    const huge = {
      ...tinyWeights,
      vector: async (path: string) => {
        const values = await tinyWeights.vector(path);
        return path === "layers.0.input_layernorm" ? values.map((value) => 1e6 * value) : values;
      },
    };
    for (const activations of arithmetics) {
      const sizes = { weights: huge, slots: 1, pages: 1, rowsMax: 8, drawsMax: 1 };
      await using backend = await WebgpuBackend.open({ ...sizes, ...choice, activations });
      backend.open(slotId(0));
      const plan = planPass([
        {
          ids: [1],
          start: 0,
          stateSlot: slotId(0),
          nextSlot: slotId(0),
          pages: [pageId(0)],
          draw: "last",
          candidates: 1,
        },
      ]);
      const [draw] = (await backend.read(backend.verify(plan))).draws;
      expect(draw instanceof NonFiniteLogitsError).toBe(activations === "f16");
    }
  });
}
