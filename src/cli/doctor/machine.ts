import { availableParallelism, cpus, totalmem } from "node:os";
import { join } from "node:path";
import { cacheFolder } from "../../cache-folder-node.ts";
import { BackendError } from "../../errors.ts";
import {
  type AdapterReport,
  type BackendChoice,
  embeddedModel,
  type GpuReport,
  inspectCpu,
  inspectGpu,
  measureCpuRead,
  openBackend,
} from "../../node.ts";
import { numericsProbe } from "../../state/numerics-probe.ts";
import { withWeights } from "../gate/open-weights.ts";
import { type SpeedLimit, speedLimits } from "./speed-limits.ts";

/** What `doctor` found, as its `--json` prints it. */
export interface MachineReport {
  readonly node: string;
  readonly platform: string;
  readonly cpu: {
    readonly model: string;
    readonly cores: number;
    readonly memory_bytes: number;
    /** What a model may take. */
    readonly free_bytes: number;
    /** By as many threads as wasm has. */
    readonly read: ReadReport;
  };
  /** Where costs of rounds and spilled prompts are kept. */
  readonly cache_folder: string;
  readonly wasm: {
    readonly threads: number;
    readonly relaxed_simd: boolean;
    readonly fused_multiply_add: boolean;
    /** What its arithmetic makes of a fixed prompt of the model that comes along, as 16 hex digits. */
    readonly numerics: string;
    readonly notes: readonly string[];
  };
  readonly webgpu: {
    /** Their places are what `--adapter` takes. */
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
    readonly read: ReadReport | null;
    /** As `wasm` has it; null without a GPU, and in software, where kernels compile for minutes. */
    readonly numerics: string | null;
  };
  /** What will be slow at best, and why: decoding can't outrun the memory. */
  readonly limits: readonly SpeedLimit[];
}

/** A measured read bandwidth; GB are 10^9 bytes. */
export interface ReadReport {
  readonly bytes: number;
  readonly samples: number;
  readonly median_gb_per_second: number;
  readonly best_gb_per_second: number;
}

/** @throws BackendError where the kernels are not built; InputError for an adapter that can't be chosen */
export async function inspectMachine(adapter: string | null): Promise<MachineReport> {
  const { threads, relaxedSimd, fusedMultiplyAdd, freeBytes } = await inspectCpu();
  const read = await measureCpuRead(threads);
  const webgpu = await gpuPart(adapter);
  const gpuBytes = webgpu.read && 1e9 * webgpu.read.median_gb_per_second;
  return {
    node: process.versions.node,
    platform: `${process.platform} ${process.arch}`,
    cpu: {
      model: cpus()[0]?.model.trim() ?? "unknown",
      cores: availableParallelism(),
      memory_bytes: totalmem(),
      free_bytes: freeBytes,
      read: readReport(read),
    },
    cache_folder: join(cacheFolder(), "deltafold"),
    wasm: {
      threads,
      relaxed_simd: relaxedSimd,
      fused_multiply_add: fusedMultiplyAdd,
      numerics: await numericsOf({ backend: "wasm" }),
      notes: relaxedSimd
        ? []
        : ["no relaxed SIMD, or one that failed its self-test: int8 activations are slower"],
    },
    webgpu,
    limits: speedLimits(read.medianBytesPerSecond, gpuBytes),
  };
}

/** Two pages hold what is asked. */
async function numericsOf(choice: Partial<BackendChoice>): Promise<string> {
  return await withWeights(embeddedModel, async (weights) => {
    const sizes = { slots: 1, pages: 2, rowsMax: 64, drawsMax: 1, taps: [] };
    await using backend = await openBackend({ weights, ...sizes }, choice);
    return await numericsProbe(backend);
  });
}

async function gpuPart(adapter: string | null): Promise<MachineReport["webgpu"]> {
  try {
    const report = await inspectGpu(adapter);
    const { software } = report.chosen;
    return found(report, software ? null : await numericsOf({ backend: "webgpu", adapter }));
  } catch (error) {
    if (!(error instanceof BackendError)) throw error;
    return { adapters: [], chosen: null, missing: error.message, read: null, numerics: null };
  }
}

function found({ adapters, chosen }: GpuReport, numerics: string | null): MachineReport["webgpu"] {
  return {
    adapters: adapters.map(({ description, subgroupSizes, ...rest }) => ({
      ...rest,
      driver: description,
      subgroup_sizes: subgroupSizes,
    })),
    chosen: chosen.description,
    missing: null,
    read: readReport(chosen.read),
    numerics,
  };
}

/** As CPU and GPU are measured. */
interface ReadBandwidth {
  readonly bytes: number;
  readonly samples: number;
  readonly medianBytesPerSecond: number;
  readonly bestBytesPerSecond: number;
}

const readReport = (read: ReadBandwidth): ReadReport => ({
  bytes: read.bytes,
  samples: read.samples,
  median_gb_per_second: gigabytes(read.medianBytesPerSecond),
  best_gb_per_second: gigabytes(read.bestBytesPerSecond),
});

/** 10^9 bytes, with two decimals. */
const gigabytes = (bytes: number): number => Math.round(bytes / 1e7) / 100;
