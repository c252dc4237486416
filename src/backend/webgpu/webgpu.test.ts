import { expect, test } from "vitest";
import { tinyShape } from "../../model/tiny-shape.ts";
import { randomWeights } from "../../weights/random.ts";
import { backendCases } from "../backend.cases.ts";
import type { BackendOptions } from "../backend.ts";
import { withNanToken } from "../broken.cases.ts";
import { modelCases, worstDifference } from "../models.cases.ts";
import { nodeGpuPlatform } from "./platform-node.ts";
import { WebgpuBackend } from "./webgpu.ts";

const tiny = randomWeights(tinyShape(), { seed: 3, bits: 4, groupSize: 32 });
const choice = { platform: nodeGpuPlatform, adapter: null, synthetic: false, taps: [] } as const;

/** Why this machine can't run these tests; null where it can. */
async function missing(): Promise<string | null> {
  try {
    const sizes = { slots: 1, pages: 1, rowsMax: 8, drawsMax: 1 };
    await using backend = await WebgpuBackend.open({ ...sizes, ...choice, weights: tiny });
    console.log(`webgpu tests run on ${backend.info.device}`);
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

const reason = await missing();

if (reason !== null) {
  test.skip(`webgpu: ${reason}`, () => {});
} else {
  backendCases({
    name: "webgpu",
    open: (sizes) => WebgpuBackend.open({ ...sizes, ...choice, weights: tiny }),
    openBroken: (sizes) => WebgpuBackend.open({ ...sizes, ...choice, weights: withNanToken(tiny) }),
  });

  for (const [changes, [bits, groupSize]] of modelCases) {
    const weights = randomWeights(tinyShape(changes), { seed: 11, bits, groupSize });
    const name = `${bits} g${groupSize} ${JSON.stringify(changes)}`;
    test(`webgpu equals reference: ${name}`, async () => {
      const open = (sizes: BackendOptions) => WebgpuBackend.open({ ...sizes, ...choice });
      expect(await worstDifference(weights, open)).toBeLessThan(2e-4);
    });
  }

  test("the device's buffers are gone with the backend", async () => {
    const sizes = { slots: 1, pages: 1, rowsMax: 8, drawsMax: 1 };
    const backend = await WebgpuBackend.open({ ...sizes, ...choice, weights: tiny });
    expect(backend.liveBuffers).toBeGreaterThan(20);
    await backend[Symbol.asyncDispose]();
    expect(backend.liveBuffers).toBe(0);
  });
}
