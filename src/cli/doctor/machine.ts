import { availableParallelism, cpus, totalmem } from "node:os";
import { BackendError } from "../../errors.ts";
import { type AdapterReport, type GpuReport, inspectCpu, inspectGpu } from "../../node.ts";

/** What `doctor` found, as its `--json` prints it. */
export interface MachineReport {
  readonly node: string;
  readonly platform: string;
  readonly cpu: {
    readonly model: string;
    readonly cores: number;
    readonly memory_bytes: number;
    readonly free_bytes: number;
  };
  readonly wasm: {
    readonly threads: number;
    readonly relaxed_simd: boolean;
    readonly fused_multiply_add: boolean;
    readonly notes: readonly string[];
  };
  readonly webgpu: {
    readonly adapters: readonly {
      readonly name: string;
      readonly vendor: string;
      readonly architecture: string;
      readonly driver: string;
      readonly software: boolean;
      readonly subgroup_sizes: readonly [number, number] | null;
      readonly features: readonly string[];
      readonly limits: AdapterReport["limits"];
      readonly notes: readonly string[];
    }[];
    /** The driver text of the adapter that an engine would take; null where there is none. */
    readonly chosen: string | null;
    /** Why there is none. */
    readonly missing: string | null;
    /** Measured on the chosen adapter. */
    readonly read: {
      readonly bytes: number;
      readonly samples: number;
      readonly median_gb_per_second: number;
      readonly best_gb_per_second: number;
    } | null;
  };
}

/** @throws BackendError where the kernels are not built; InputError for an adapter that isn't there */
export async function inspectMachine(adapter: string | null): Promise<MachineReport> {
  const { threads, relaxedSimd, fusedMultiplyAdd, freeBytes } = await inspectCpu();
  return {
    node: process.versions.node,
    platform: `${process.platform} ${process.arch}`,
    cpu: {
      model: cpus()[0]?.model.trim() ?? "unknown",
      cores: availableParallelism(),
      memory_bytes: totalmem(),
      free_bytes: freeBytes,
    },
    wasm: {
      threads,
      relaxed_simd: relaxedSimd,
      fused_multiply_add: fusedMultiplyAdd,
      notes: relaxedSimd
        ? []
        : ["no relaxed SIMD, or one that failed its self-test: int8 activations are slower"],
    },
    webgpu: await gpuPart(adapter),
  };
}

async function gpuPart(adapter: string | null): Promise<MachineReport["webgpu"]> {
  try {
    return found(await inspectGpu(adapter));
  } catch (error) {
    if (!(error instanceof BackendError)) throw error;
    return { adapters: [], chosen: null, missing: error.message, read: null };
  }
}

function found({ adapters, chosen }: GpuReport): MachineReport["webgpu"] {
  const { bytes, samples, medianBytesPerSecond, bestBytesPerSecond } = chosen.read;
  return {
    adapters: adapters.map(({ description, subgroupSizes, ...rest }) => ({
      ...rest,
      driver: description,
      subgroup_sizes: subgroupSizes,
    })),
    chosen: chosen.description,
    missing: null,
    read: {
      bytes,
      samples,
      median_gb_per_second: gigabytes(medianBytesPerSecond),
      best_gb_per_second: gigabytes(bestBytesPerSecond),
    },
  };
}

/** 10^9 bytes, with two decimals. */
const gigabytes = (bytes: number): number => Math.round(bytes / 1e7) / 100;
