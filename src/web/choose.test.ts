import { expect, test } from "vitest";
import { chooseBackend } from "./choose.ts";

const gpu = (adapter: { info: { isFallbackAdapter: boolean } } | null): GPU =>
  ({ requestAdapter: async () => adapter }) as unknown as GPU;

test("takes webgpu where there is a GPU, and only there", async () => {
  expect(await chooseBackend(gpu({ info: { isFallbackAdapter: false } }))).toBe("webgpu");
  expect(await chooseBackend(gpu({ info: { isFallbackAdapter: true } }))).toBe("wasm");
  expect(await chooseBackend(gpu(null))).toBe("wasm");
  expect(await chooseBackend(undefined)).toBe("wasm");
});
