import { expect, test } from "vitest";
import { missingGpu } from "../../backend/webgpu/gpu.cases.ts";
import { failedOf, runDrafted, tinySet } from "./drafted.cases.ts";
import { webgpu } from "./webgpu.cases.ts";

const missing = await missingGpu();

test.skipIf(missing !== null)("passes on webgpu", { timeout: 900_000 }, async () => {
  const report = await runDrafted(webgpu, tinySet);
  expect(failedOf(report)).toEqual([]);
  expect(report).toMatchObject({ passed: 8 * 4 + 3, not_run: [] });
});
