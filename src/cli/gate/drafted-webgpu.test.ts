import { expect, test } from "vitest";
import { missingGpu } from "../../backend/webgpu/gpu.cases.ts";
import { nodeGpuPlatform } from "../../backend/webgpu/platform-node.ts";
import { WebgpuBackend } from "../../backend/webgpu/webgpu.ts";
import { failedOf, runDrafted, tinySet } from "./drafted.cases.ts";

const missing = await missingGpu();

test.skipIf(missing !== null)("passes on webgpu", { timeout: 900_000 }, async () => {
  const gpu = { platform: nodeGpuPlatform, adapter: null, synthetic: false } as const;
  const report = await runDrafted(
    (options) => WebgpuBackend.open({ ...options, ...gpu, activations: "f32" }),
    tinySet,
  );
  expect(failedOf(report)).toEqual([]);
  expect(report).toMatchObject({ passed: 8 * 4 + 3, not_run: [] });
});
