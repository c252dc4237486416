import { expect, test } from "vitest";
import { NonFiniteLogitsError } from "../../errors.ts";
import { pageId, slotId } from "../../ids.ts";
import { planPass } from "../../model/plan.ts";
import { tinyShape } from "../../model/tiny-shape.ts";
import { randomWeights } from "../../weights/random.ts";
import { backendCases } from "../backend.cases.ts";
import type { BackendOptions } from "../backend.ts";
import { withNanToken } from "../broken.cases.ts";
import { modelCases, worstDifference } from "../models.cases.ts";
import { openDevice } from "./device.ts";
import { missingGpu } from "./gpu.cases.ts";
import { nodeGpuPlatform } from "./platform-node.ts";
import type { Arithmetic } from "./projection-layout.ts";
import { WebgpuBackend } from "./webgpu.ts";

const tiny = randomWeights(tinyShape(), { seed: 3, bits: 4, groupSize: 32 });
const choice = { platform: nodeGpuPlatform, adapter: null, synthetic: false, taps: [] } as const;

/** Why this machine can't run these tests; null where it can. */
const reason = await missingGpu();

/** The classes that the adapter has. */
async function arithmeticsHere(): Promise<Arithmetic[]> {
  const { device } = await openDevice(nodeGpuPlatform, null);
  const all: Arithmetic[] = device.features.has("shader-f16") ? ["f32", "f16"] : ["f32"];
  device.destroy();
  return all;
}

const arithmetics = reason === null ? await arithmeticsHere() : [];

if (reason !== null) {
  test.skip(`webgpu: ${reason}`, () => {});
} else {
  for (const activations of arithmetics) {
    const open = (options: BackendOptions) =>
      WebgpuBackend.open({ ...options, ...choice, activations });
    backendCases({
      name: `webgpu ${activations}`,
      open: (sizes) => open({ ...sizes, taps: [], weights: tiny }),
      openBroken: (sizes) => open({ ...sizes, taps: [], weights: withNanToken(tiny) }),
    });

    for (const [changes, [bits, groupSize]] of modelCases) {
      const weights = randomWeights(tinyShape(changes), { seed: 11, bits, groupSize });
      const name = `${bits} g${groupSize} ${JSON.stringify(changes)}`;
      test(`webgpu ${activations} equals reference: ${name}`, async () => {
        // These models magnify a rounding a hundredfold; project-tiles.test.ts is strict about the kernel.
        const bound = activations === "f16" ? 0.1 : 2e-4;
        expect(await worstDifference(weights, open)).toBeLessThan(bound);
      });
    }
  }

  for (const activations of arithmetics) {
    test(`webgpu ${activations}: formats may differ among matrices that share an input`, async () => {
      const shape = tinyShape({ headDim: 64, rotaryDim: 16, kvHeadCount: 1, headCount: 2 });
      const weights = randomWeights(shape, { seed: 11, bits: 4, groupSize: 32 });
      const wide = randomWeights(shape, { seed: 11, bits: 8, groupSize: 32 });
      const mixed = {
        ...weights,
        matrix: (path: string) => (/v_proj|in_proj_z/.test(path) ? wide : weights).matrix(path),
      };
      const open = (options: BackendOptions) =>
        WebgpuBackend.open({ ...options, ...choice, activations });
      const bound = activations === "f16" ? 0.1 : 2e-4;
      expect(await worstDifference(mixed, open)).toBeLessThan(bound);
    });
  }

  test.runIf(arithmetics.includes("f16"))(
    "an input beyond f16 ends its row with an error",
    async () => {
      // The norm's weight makes the first projection's input about a million.
      const huge = {
        ...tiny,
        vector: async (path: string) => {
          const values = await tiny.vector(path);
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
    },
  );

  test("the device's buffers are gone with the backend", async () => {
    const sizes = { slots: 1, pages: 1, rowsMax: 8, drawsMax: 1 };
    const backend = await WebgpuBackend.open({ ...sizes, ...choice, weights: tiny });
    expect(backend.liveBuffers).toBeGreaterThan(20);
    await backend[Symbol.asyncDispose]();
    expect(backend.liveBuffers).toBe(0);
  });
}
