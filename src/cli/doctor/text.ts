import { aligned, bytesText, type Line, plural } from "../format.ts";
import type { MachineReport, ReadReport } from "./machine.ts";

/** Features that change how a model is computed; --json lists all. */
const toldFeatures: ReadonlySet<string> = new Set([
  "shader-f16",
  "subgroups",
  "subgroup-size-control",
  "chromium-experimental-subgroup-matrix",
]);

/** A report as aligned lines. */
export function reportText(report: MachineReport): string {
  const { node, platform, cpu, wasm, webgpu } = report;
  const simd = wasm.relaxed_simd ? "relaxed SIMD" : "SIMD";
  const madd = wasm.fused_multiply_add ? "fused" : "unfused";
  const lines: Line[] = [
    ["node", `${node} on ${platform}`],
    ["cpu", `${cpu.model}, ${plural(cpu.cores, "core")}`],
    ["memory", `${bytesText(cpu.free_bytes)} free of ${bytesText(cpu.memory_bytes)}`],
    ["reads", readText(cpu.read)],
    ["caches", report.cache_folder],
    ["wasm", `${plural(wasm.threads, "thread")}, ${simd}, ${madd} multiply-add`],
    ...wasm.notes.map((note): Line => ["", note]),
    ["numerics", wasm.numerics],
    ...gpuLines(webgpu),
    ["at most", limitsOf(report, "cpu_tokens_per_second", "wasm")],
    ...(webgpu.read ? ([["", limitsOf(report, "gpu_tokens_per_second", "webgpu")]] as Line[]) : []),
    [
      "",
      "because each token reads all weights (of 4 bits here); drafts and streams share a reading",
    ],
  ];
  return aligned([lines]);
}

function gpuLines(webgpu: MachineReport["webgpu"]): Line[] {
  const { adapters, chosen, missing, read, numerics } = webgpu;
  if (missing !== null) return [["webgpu", missing]];
  const lines: Line[] = [["webgpu", `takes ${chosen}`]];
  if (read) lines.push(["reads", readText(read)]);
  if (numerics !== null) lines.push(["numerics", numerics]);
  for (const [at, adapter] of adapters.entries()) {
    const { name, vendor, architecture, driver, software, features } = adapter;
    lines.push(
      [`adapter ${at}`, `${name}${software ? ", in software" : ""}`],
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

const readText = ({ median_gb_per_second: median, best_gb_per_second: best, bytes }: ReadReport) =>
  `${median} GB/s, at best ${best} (${bytesText(bytes)} at a time)`;

/** The speeds that the memory allows. */
function limitsOf(
  { limits }: MachineReport,
  rate: "cpu_tokens_per_second" | "gpu_tokens_per_second",
  backend: string,
): string {
  const rates = limits.map((limit) => `${limit.shape} ${limit[rate]}`);
  return `${rates.join(", ")} tokens a second on ${backend}`;
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
