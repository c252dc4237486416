import { firstNamed } from "./adapters.ts";
import { hasMatrixUnit, openDevice, requestAdapter } from "./device.ts";
import type { GpuPlatform } from "./platform.ts";
import { measureReadBandwidth, type ReadBandwidth } from "./read-bandwidth.ts";
import { isSoftware } from "./support.ts";

/** Limits that decide what fits and how it is computed. */
const toldLimits = [
  "maxBufferSize",
  "maxStorageBufferBindingSize",
  "maxStorageBuffersPerShaderStage",
  "minStorageBufferOffsetAlignment",
  "maxComputeInvocationsPerWorkgroup",
  "maxComputeWorkgroupStorageSize",
  "maxComputeWorkgroupsPerDimension",
] as const;

/** The binding limit from which on no released model's matrix is split. */
const wholeBindingBytes = 2 ** 31 - 4;

export interface AdapterReport {
  /** What `--adapter` takes a part of; or else it takes the place in the list. */
  readonly name: string;
  readonly vendor: string;
  readonly architecture: string;
  /** The driver, mostly. */
  readonly description: string;
  readonly software: boolean;
  readonly subgroupSizes: readonly [least: number, most: number] | null;
  readonly features: readonly string[];
  readonly limits: Readonly<Record<(typeof toldLimits)[number], number>>;
  /** What it lacks, and what comes of that. */
  readonly notes: readonly string[];
}

export interface GpuReport {
  readonly adapters: readonly AdapterReport[];
  /** The adapter that an engine would take, and how fast it reads. */
  readonly chosen: {
    readonly description: string;
    readonly software: boolean;
    readonly read: ReadBandwidth;
  };
}

/**
 * Says what GPUs there are and measures the one that an engine would take.
 * @param adapter an adapter's place in the list, or part of its name; null takes the first
 * @throws BackendError where there is none or it gives no device; InputError for a wrong choice
 */
export async function inspectGpu(
  platform: GpuPlatform,
  adapter: string | null,
): Promise<GpuReport> {
  const names = await platform.adapterNames();
  const adapters: AdapterReport[] = [];
  for (const [at, name] of names.entries()) {
    const first = firstNamed(names, name);
    const report = reportOf(name, await requestAdapter(platform, name));
    adapters.push(first === at ? report : { ...report, notes: [hiddenBy(first), ...report.notes] });
  }
  const { device, guard, description } = await openDevice(platform, adapter);
  try {
    const read = await measureReadBandwidth(device);
    guard.check();
    return { adapters, chosen: { description, software: isSoftware(device), read } };
  } finally {
    device.destroy();
  }
}

const hiddenBy = (first: number): string =>
  `adapter ${first} is given for this name, and told of here: a process that is to take this one ` +
  "must not see that one (docs/scaling.md)";

function reportOf(name: string, adapter: GPUAdapter): AdapterReport {
  const { info, features, limits } = adapter;
  const { vendor, architecture, description } = info;
  const { subgroupMinSize, subgroupMaxSize } = info;
  const software = info.isFallbackAdapter;
  return {
    name,
    vendor,
    architecture,
    description,
    software,
    subgroupSizes: features.has("subgroups") ? [subgroupMinSize, subgroupMaxSize] : null,
    features: [...features].sort(),
    limits: Object.fromEntries(
      toldLimits.map((limit) => [limit, limits[limit]]),
    ) as AdapterReport["limits"],
    notes: notesOf(adapter),
  };
}

function notesOf(adapter: GPUAdapter): string[] {
  const { info, features, limits } = adapter;
  const notes: string[] = [];
  if (info.isFallbackAdapter)
    notes.push("it computes on the CPU, where the wasm backend is faster");
  if (!features.has("shader-f16")) {
    notes.push("no shader-f16: neither f16 activations nor f16 keys and values");
  }
  if (!hasMatrixUnit(adapter)) {
    notes.push(
      "no matrix unit that the kernels know (f16, 16 × 8 × 16 tiles, subgroups of 32): matmuls are f32, " +
        "and slower with every row of a round or prompt",
    );
  }
  if (limits.maxStorageBufferBindingSize < wholeBindingBytes) {
    const mib = Math.floor(limits.maxStorageBufferBindingSize / 2 ** 20);
    notes.push(
      `a binding holds ${mib} MiB: larger matrices are split, and so much is the most that one ` +
        "layer's keys can take",
    );
  }
  return notes;
}
