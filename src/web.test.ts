import { afterEach, expect, test, vi } from "vitest";
import { stubPlatform } from "./backend/webgpu/stub-device.cases.ts";
import { WebgpuBackend } from "./backend/webgpu/webgpu.ts";
import { InputError } from "./errors.ts";
import { fileIn, TestServer } from "./web/server.cases.ts";
import { openEngine } from "./web.ts";

const nano = new URL("../models/nano/", import.meta.url);

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

test.each([
  { backend: "wasm", activations: "f16" },
  { backend: "wasm", kv: "f16" },
  { backend: "webgpu", activations: "int8" },
  { activations: "int8" },
] as const)("refuses %o before it asks the server", async (options) => {
  await using server = await TestServer.start(() => null);
  await expect(openEngine(server.url, options)).rejects.toThrow(InputError);
  expect(server.asked).toEqual([]);
});

test.each([
  [{}, { activations: "auto", kv: "f32" }],
  [
    { activations: "f16", kv: "f16" },
    { activations: "f16", kv: "f16" },
  ],
] as const)("opens a GPU for %o with %o", async (options, opened) => {
  await using server = await TestServer.start((path) => fileIn(nano, path.slice(1)));
  vi.stubGlobal("navigator", { gpu: stubPlatform.gpu(null) });
  const open = vi.spyOn(WebgpuBackend, "open").mockRejectedValue(new Error("enough"));
  const asked = openEngine(server.url, { backend: "webgpu", cache: false, ...options });
  await expect(asked).rejects.toThrow("enough");
  expect(open).toHaveBeenCalledExactlyOnceWith(expect.objectContaining(opened));
});
