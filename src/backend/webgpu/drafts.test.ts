import { test } from "vitest";
import type { BackendOptions } from "../backend.ts";
import { draftCases } from "../drafts.cases.ts";
import { missingGpu } from "./gpu.cases.ts";
import { nodeGpuPlatform } from "./platform-node.ts";
import { WebgpuBackend } from "./webgpu.ts";

const reason = await missingGpu();
const choice = { platform: nodeGpuPlatform, adapter: null, synthetic: false } as const;

if (reason !== null) {
  test.skip(`webgpu drafts: ${reason}`, () => {});
} else {
  for (const activations of ["f32"] as const) {
    const open = (options: BackendOptions) =>
      WebgpuBackend.open({ ...options, ...choice, activations });
    draftCases({ name: `webgpu ${activations}`, open });
  }
}
