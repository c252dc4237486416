import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";
import { runLine } from "../io.cases.ts";
import type { MachineReport } from "./machine.ts";
import { speedLimits } from "./speed-limits.ts";
import { reportText } from "./text.ts";

const main = join(import.meta.dirname, "../main.ts");

const report: MachineReport = {
  node: "24.0.0",
  platform: "linux x64",
  cpu: {
    ...{ model: "A CPU", cores: 8, memory_bytes: 32 * 2 ** 30, free_bytes: 20.5 * 2 ** 30 },
    read: { bytes: 2 ** 30, samples: 7, median_gb_per_second: 40.25, best_gb_per_second: 41 },
  },
  cache_folder: "/home/someone/.cache/deltafold",
  wasm: {
    ...{ threads: 8, relaxed_simd: false, fused_multiply_add: false },
    numerics: "0123456789abcdef",
    notes: ["no relaxed SIMD"],
  },
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
    numerics: "fedcba9876543210",
  },
  limits: [
    { shape: "2b", cpu_tokens_per_second: 36.7, gpu_tokens_per_second: 730.5 },
    { shape: "27b", cpu_tokens_per_second: 2.7, gpu_tokens_per_second: 54.4 },
  ],
};

test("a machine with a GPU, in lines", () => {
  expect(reportText(report)).toMatchInlineSnapshot(`
    "node         24.0.0 on linux x64
    cpu          A CPU, 8 cores
    memory       20.5 GiB free of 32.0 GiB
    reads        40.25 GB/s, at best 41 (1.0 GiB at a time)
    caches       /home/someone/.cache/deltafold
    wasm         8 threads, SIMD, unfused multiply-add
                 no relaxed SIMD
    numerics     0123456789abcdef
    webgpu       takes version 1
    reads        800.5 GB/s, at best 801.25 (256.0 MiB at a time)
    numerics     fedcba9876543210
    adapter 0    A GPU
      vendor     acme
      driver     version 1
      subgroups  16 to 32
      features   shader-f16, subgroups
      limits     4.0 GiB a buffer, 128.0 MiB a binding, 16 bindings, 1024 invocations, 32 KiB of workgroup memory
      note       no subgroup matrices: it is so
    at most      2b 36.7, 27b 2.7 tokens a second on wasm
                 2b 730.5, 27b 54.4 tokens a second on webgpu
                 because each token reads all weights (of 4 bits here); drafts and streams share a reading"
  `);
});

test("a machine without, in lines", () => {
  const none = { chosen: null, missing: "There is no adapter.", read: null, numerics: null };
  const webgpu = { adapters: [], ...none };
  const wasm = { ...report.wasm, relaxed_simd: true, fused_multiply_add: true, notes: [] };
  expect(reportText({ ...report, wasm, webgpu })).toMatchInlineSnapshot(`
    "node      24.0.0 on linux x64
    cpu       A CPU, 8 cores
    memory    20.5 GiB free of 32.0 GiB
    reads     40.25 GB/s, at best 41 (1.0 GiB at a time)
    caches    /home/someone/.cache/deltafold
    wasm      8 threads, relaxed SIMD, fused multiply-add
    numerics  0123456789abcdef
    webgpu    There is no adapter.
    at most   2b 36.7, 27b 2.7 tokens a second on wasm
              because each token reads all weights (of 4 bits here); drafts and streams share a reading"
  `);
});

test("doctor tells of this machine, and the same as JSON", async () => {
  const { code, stdout } = await runLine(["doctor", "--json"]);
  expect(code).toBe(0);
  const found: MachineReport = JSON.parse(stdout);
  const { cpu, wasm, webgpu, limits } = found;
  expect(cpu.cores).toBeGreaterThan(0);
  expect(cpu.read.median_gb_per_second).toBeGreaterThan(0);
  expect(cpu.read.best_gb_per_second).toBeGreaterThanOrEqual(cpu.read.median_gb_per_second);
  expect(found.cache_folder).toMatch(/deltafold$/);
  expect(wasm.threads).toBeGreaterThan(0);
  expect(wasm.numerics).toMatch(/^[0-9a-f]{16}$/);
  expect(limits.map(({ shape }) => shape)).toEqual(["0.8b", "2b", "4b", "9b", "27b"]);
  expect(webgpu.missing === null).toBe(webgpu.chosen !== null);
  if (webgpu.chosen !== null) {
    expect(webgpu.adapters.map(({ driver }) => driver)).toContain(webgpu.chosen);
    expect(webgpu.read!.median_gb_per_second).toBeGreaterThan(0);
    expect(webgpu.read!.best_gb_per_second).toBeGreaterThanOrEqual(
      webgpu.read!.median_gb_per_second,
    );
    const chosen = webgpu.adapters.find(({ driver }) => driver === webgpu.chosen)!;
    expect(webgpu.numerics === null).toBe(chosen.software);
  }
  expect(reportText(found)).toContain(cpu.model);
});

test("no decoding is faster than its memory", () => {
  // 14.412 GB of weights of a 27B, and 302 MB of states (its arithmetic, to 0.1 %).
  const all = speedLimits(1e12, 14.714e12);
  expect(all.at(-1)).toEqual({
    shape: "27b",
    cpu_tokens_per_second: 68,
    gpu_tokens_per_second: 1000,
  });
  expect(all.every((limit) => limit.gpu_tokens_per_second! > limit.cpu_tokens_per_second)).toBe(
    true,
  );
  expect(speedLimits(1e12, null)[0]!.gpu_tokens_per_second).toBeNull();
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
  expect(webgpu).toMatchObject({ adapters: [], chosen: null, read: null, numerics: null });
  expect(webgpu.missing).toMatch(/Install the GPU's Vulkan driver|package webgpu can't be loaded/);
});
