import { expect, test } from "vitest";
import { missingGpu, tinyWeights } from "./gpu.cases.ts";
import { arithmeticCases, choice } from "./webgpu.cases.ts";
import { WebgpuBackend } from "./webgpu.ts";

/** Why this machine can't run these tests; null where it can. */
const reason = await missingGpu();

if (reason !== null) {
  test.skip(`webgpu: ${reason}`, () => {});
} else {
  arithmeticCases("f32");

  test("the device's buffers are gone with the backend", async () => {
    const sizes = { slots: 1, pages: 1, rowsMax: 8, drawsMax: 1 };
    const backend = await WebgpuBackend.open({ ...sizes, ...choice, weights: tinyWeights });
    expect(backend.liveBuffers).toBeGreaterThan(20);
    await backend[Symbol.asyncDispose]();
    expect(backend.liveBuffers).toBe(0);
  });
}
