import { bytesText } from "../format.ts";
import type { MachineReport } from "./machine.ts";

/** Features that change how a model is computed; --json lists all. */
const toldFeatures: ReadonlySet<string> = new Set([
  "shader-f16",
  "subgroups",
  "subgroup-size-control",
  "chromium-experimental-subgroup-matrix",
]);

type Line = readonly [name: string, value: string];

/** A report as aligned lines. */
export function reportText({ node, platform, cpu, wasm, webgpu }: MachineReport): string {
  const simd = wasm.relaxed_simd ? "relaxed SIMD" : "SIMD";
  const madd = wasm.fused_multiply_add ? "fused" : "unfused";
  return aligned([
    ["node", `${node} on ${platform}`],
    ["cpu", `${cpu.model}, ${plural(cpu.cores, "core")}`],
    ["memory", `${bytesText(cpu.free_bytes)} free of ${bytesText(cpu.memory_bytes)}`],
    ["wasm", `${plural(wasm.threads, "thread")}, ${simd}, ${madd} multiply-add`],
    ...wasm.notes.map((note): Line => ["", note]),
    ...gpuLines(webgpu),
  ]);
}

function gpuLines({ adapters, chosen, missing, read }: MachineReport["webgpu"]): Line[] {
  if (missing !== null) return [["webgpu", missing]];
  const lines: Line[] = [["webgpu", `takes ${chosen}`]];
  if (read) {
    const { median_gb_per_second: median, best_gb_per_second: best, bytes } = read;
    lines.push(["reads", `${median} GB/s, at best ${best} (${bytesText(bytes)} at a time)`]);
  }
  for (const adapter of adapters) {
    const { name, vendor, architecture, driver, software, features } = adapter;
    lines.push(
      ["adapter", `${name}${software ? ", in software" : ""}`],
      ["  vendor", [vendor, architecture].filter((part) => part !== "").join(", ")],
      ["  driver", driver],
      ["  subgroups", adapter.subgroup_sizes?.join(" to ") ?? "none"],
      ["  features", features.filter((name) => toldFeatures.has(name)).join(", ") || "none"],
      ["  limits", limitsText(adapter.limits)],
      ...adapter.notes.map((note): Line => ["  note", note]),
    );
  }
  return lines;
}

function limitsText(limits: MachineReport["webgpu"]["adapters"][number]["limits"]): string {
  return [
    `${bytesText(limits.maxBufferSize)} a buffer`,
    `${bytesText(limits.maxStorageBufferBindingSize)} a binding`,
    `${limits.maxStorageBuffersPerShaderStage} bindings`,
    `${limits.maxComputeInvocationsPerWorkgroup} invocations`,
    `${limits.maxComputeWorkgroupStorageSize / 1024} KiB of workgroup memory`,
  ].join(", ");
}

function aligned(lines: readonly Line[]): string {
  const width = Math.max(...lines.map(([name]) => name.length)) + 2;
  return lines.map(([name, value]) => (name.padEnd(width) + value).trimEnd()).join("\n");
}

const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`;
