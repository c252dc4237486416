import { expect, test } from "vitest";
import { missingGpu } from "../../backend/webgpu/gpu.cases.ts";
import { failedOf } from "./drafted.cases.ts";
import { runStreams, tinyStreams } from "./streams.cases.ts";
import { webgpu } from "./webgpu.cases.ts";

const missing = await missingGpu();

test.skipIf(missing !== null)("passes on webgpu", { timeout: 900_000 }, async () => {
  const report = await runStreams(webgpu, { ...tinyStreams, tokensMax: 4 }, 4);
  expect(failedOf(report)).toEqual([]);
  expect(report.passed).toBe(4);
});
