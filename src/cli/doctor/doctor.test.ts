import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";
import { runLine } from "../io.cases.ts";
import type { MachineReport } from "./machine.ts";
import { reportText } from "./text.ts";

const main = join(import.meta.dirname, "../main.ts");

const report: MachineReport = {
  node: "24.0.0",
  platform: "linux x64",
  cpu: { model: "A CPU", cores: 8, memory_bytes: 32 * 2 ** 30, free_bytes: 20.5 * 2 ** 30 },
  wasm: { threads: 8, relaxed_simd: false, fused_multiply_add: false, notes: ["no relaxed SIMD"] },
  webgpu: {
    adapters: [
      {
        name: "A GPU",
        vendor: "acme",
        architecture: "",
        driver: "version 1",
        software: false,
        subgroup_sizes: [16, 32],
        features: ["bgra8unorm-storage", "shader-f16", "subgroups"],
        limits: {
          maxBufferSize: 4 * 2 ** 30,
          maxStorageBufferBindingSize: 128 * 2 ** 20,
          maxStorageBuffersPerShaderStage: 16,
          minStorageBufferOffsetAlignment: 16,
          maxComputeInvocationsPerWorkgroup: 1024,
          maxComputeWorkgroupStorageSize: 32768,
          maxComputeWorkgroupsPerDimension: 65535,
        },
        notes: ["no subgroup matrices: it is so"],
      },
    ],
    chosen: "version 1",
    missing: null,
    read: { bytes: 2 ** 28, samples: 7, median_gb_per_second: 800.5, best_gb_per_second: 801.25 },
  },
};

test("a machine with a GPU, in lines", () => {
  expect(reportText(report)).toMatchInlineSnapshot(`
    "node         24.0.0 on linux x64
    cpu          A CPU, 8 cores
    memory       20.5 GiB free of 32.0 GiB
    wasm         8 threads, SIMD, unfused multiply-add
                 no relaxed SIMD
    webgpu       takes version 1
    reads        800.5 GB/s, at best 801.25 (256.0 MiB at a time)
    adapter      A GPU
      vendor     acme
      driver     version 1
      subgroups  16 to 32
      features   shader-f16, subgroups
      limits     4.0 GiB a buffer, 128.0 MiB a binding, 16 bindings, 1024 invocations, 32 KiB of workgroup memory
      note       no subgroup matrices: it is so"
  `);
});

test("a machine without, in lines", () => {
  const webgpu = { adapters: [], chosen: null, missing: "There is no adapter.", read: null };
  const wasm = { ...report.wasm, relaxed_simd: true, fused_multiply_add: true, notes: [] };
  expect(reportText({ ...report, wasm, webgpu })).toMatchInlineSnapshot(`
    "node    24.0.0 on linux x64
    cpu     A CPU, 8 cores
    memory  20.5 GiB free of 32.0 GiB
    wasm    8 threads, relaxed SIMD, fused multiply-add
    webgpu  There is no adapter."
  `);
});

test("doctor tells of this machine, and the same as JSON", async () => {
  const { code, stdout } = await runLine(["doctor", "--json"]);
  expect(code).toBe(0);
  const { cpu, wasm, webgpu }: MachineReport = JSON.parse(stdout);
  expect(cpu.cores).toBeGreaterThan(0);
  expect(wasm.threads).toBeGreaterThan(0);
  expect(webgpu.missing === null).toBe(webgpu.chosen !== null);
  if (webgpu.chosen !== null) {
    expect(webgpu.adapters.map(({ driver }) => driver)).toContain(webgpu.chosen);
    expect(webgpu.read!.median_gb_per_second).toBeGreaterThan(0);
    expect(webgpu.read!.best_gb_per_second).toBeGreaterThanOrEqual(
      webgpu.read!.median_gb_per_second,
    );
  }
  expect((await runLine(["doctor"])).stdout).toContain(cpu.model);
});

test("without a GPU it ends well and says what to install", () => {
  const env = { ...process.env, VK_DRIVER_FILES: "/nowhere", VK_ICD_FILENAMES: "/nowhere" };
  const { status, stdout } = spawnSync(process.execPath, [main, "doctor", "--json"], {
    encoding: "utf8",
    env,
  });
  expect(status).toBe(0);
  const { webgpu }: MachineReport = JSON.parse(stdout);
  if (process.platform !== "linux") return;
  expect(webgpu).toMatchObject({ adapters: [], chosen: null, read: null });
  expect(webgpu.missing).toMatch(/Install the GPU's Vulkan driver|package webgpu can't be loaded/);
});
