/** @module Opens checkpoints and engines in Node. */
import { existsSync } from "node:fs";
import { basename, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { Backend, BackendOptions } from "./backend/backend.ts";
import { ReferenceBackend } from "./backend/reference/reference.ts";
import { nodePlatform } from "./backend/wasm/platform-node.ts";
import { probeKernels } from "./backend/wasm/probe.ts";
import { WasmBackend } from "./backend/wasm/wasm.ts";
import type { GpuReport } from "./backend/webgpu/inspect.ts";
import type { WebgpuBackend } from "./backend/webgpu/webgpu.ts";
import { openFolder } from "./checkpoint/source-node.ts";
import { costFiles } from "./draft/cost-store-node.ts";
import type { Engine } from "./engine.ts";
import { promptCacheBytesDefault, threadsMax } from "./limits.ts";
import type { DrafterPlace } from "./open-drafter.ts";
import {
  type Activations,
  checkCount,
  checkPrecision,
  type GpuActivations,
  gpuActivations,
  type KvType,
  type ModelOptions,
  openModel,
} from "./open-model.ts";
import { packageVersion } from "./package-version-node.ts";
import { spillFiles, spillFolder } from "./state/spill-files-node.ts";
import type { SpillIdentity } from "./state/spill-header.ts";

export type { AdapterReport, GpuReport } from "./backend/webgpu/inspect.ts";
export * from "./index.ts";
export { type DrafterBits, drafterBits } from "./open-drafter.ts";
export type { Activations, KvType, ModelOptions } from "./open-model.ts";

/** The model that comes with the package. */
export const embeddedModel = "nano";

export type BackendName = "webgpu" | "wasm" | "reference";

export interface BackendChoice {
  readonly backend: BackendName;
  /** Compute threads of the wasm backend. */
  readonly threads: number;
  readonly activations: Activations;
  /** Part of the name of the GPU adapter; null takes the first. */
  readonly adapter: string | null;
  /** How the webgpu backend stores keys and values; f32 unless said. */
  readonly kv: KvType;
}

export interface OpenOptions extends Partial<BackendChoice>, ModelOptions {
  /** A drafter's name or folder; "auto", unless said, looks beside the model's; "none" takes none. */
  readonly drafter?: string;
  /** Where prompts are spilled to; unless said, a folder of the model's own among the user's caches. */
  readonly spillFolder?: string;
}

/** The drafter that comes with it. */
const embeddedDrafter = `${embeddedModel}-dflash2`;

/** The folder of a model or drafter: an embedded one's name, or a path. */
export function modelFolder(model: string): string {
  if (model !== embeddedModel && model !== embeddedDrafter) return resolve(model);
  return fileURLToPath(new URL(`../models/${model}`, import.meta.url));
}

/**
 * Opens a backend over any weights.
 * @param besides bytes of memory that are to be left for something else
 * @throws InputError for a precision that it doesn't have, MemoryError, BackendError
 */
export async function openBackend(
  options: BackendOptions,
  choice: Partial<BackendChoice> = {},
  besides = 0,
): Promise<Backend> {
  checkPrecision(choice.backend ?? "wasm", choice);
  const memoryBytesMax = process.availableMemory() - besides;
  if (choice.backend === "reference") {
    return await ReferenceBackend.open({ ...options, memoryBytesMax });
  }
  const { activations, adapter = null, kv = "f32" } = choice;
  if (choice.backend === "webgpu") {
    const gpu = { adapter, activations: gpuActivations(activations), kv };
    return await openWebgpu(options, gpu, false);
  }
  return await WasmBackend.open({
    ...options,
    memoryBytesMax,
    platform: nodePlatform,
    threads: choice.threads ?? nodePlatform.threads,
    activations: activations === "int8" ? "int8" : "f32",
  });
}

/** Opens the GPU over synthetic weights, whose values are made on the device. */
export const openSyntheticGpu = (
  options: BackendOptions,
  choice: GpuChoice,
): Promise<WebgpuBackend> => openWebgpu(options, choice, true);

/** Of the GPU: which, and what its matmuls read. */
export interface GpuChoice {
  readonly adapter: string | null;
  readonly activations: GpuActivations;
  readonly kv?: KvType;
}

/** Dawn is large and optional: it is loaded by those who ask for it. */
async function openWebgpu(
  options: BackendOptions,
  choice: GpuChoice,
  synthetic: boolean,
): Promise<WebgpuBackend> {
  const { WebgpuBackend } = await import("./backend/webgpu/webgpu.ts");
  const { nodeGpuPlatform: platform } = await import("./backend/webgpu/platform-node.ts");
  return await WebgpuBackend.open({ ...options, ...choice, platform, synthetic });
}

/**
 * Says what GPUs this machine has, and how fast the chosen one reads.
 * @param adapter part of an adapter's name; null takes the first
 * @throws BackendError where there is none; InputError for a wrong name
 */
export async function inspectGpu(adapter: string | null): Promise<GpuReport> {
  const gpu = await import("./backend/webgpu/inspect.ts");
  const { nodeGpuPlatform: platform } = await import("./backend/webgpu/platform-node.ts");
  return await gpu.inspectGpu(platform, adapter);
}

/** What the wasm backend runs on, and what its self-test found. */
export interface CpuReport {
  readonly threads: number;
  readonly relaxedSimd: boolean;
  readonly fusedMultiplyAdd: boolean;
  /** Bytes that a model may take. */
  readonly freeBytes: number;
}

/** @throws BackendError where the kernels are not built */
export async function inspectCpu(): Promise<CpuReport> {
  const { relaxed, fused } = await probeKernels(nodePlatform);
  return {
    threads: nodePlatform.threads,
    relaxedSimd: relaxed,
    fusedMultiplyAdd: fused,
    freeBytes: process.availableMemory(),
  };
}

/**
 * Loads a model: its checkpoint, tokenizer, template, drafter and backend.
 * @throws CheckpointError, InputError, MemoryError, BackendError
 */
export async function openEngine(model: string, options: OpenOptions = {}): Promise<Engine> {
  checkCount("threads", options.threads ?? 1, threadsMax);
  const path = modelFolder(model);
  const costs = costFiles(packageVersion());
  const parts = {
    folder: await openFolder(path),
    model: basename(path),
    drafter: drafterPlace(path, options.drafter ?? "auto"),
    costs,
    spill: {
      files: (identity: SpillIdentity) => spillFiles(options.spillFolder ?? spillFolder(identity)),
      build: costs.build,
    },
    promptCacheBytes: promptCacheBytesDefault,
    openBackend: (sizes: BackendOptions, besides: number) => openBackend(sizes, options, besides),
  };
  return await openModel(parts, options);
}

/** What a drafter's folder is called, after its model's. */
const drafterSuffixes = ["-dflash2", "-DFlash2", "-dflash", "-DFlash"];
/** What a quantised model's folder is called, after the model's own, for which the drafter was made. */
const bitsSuffix = /(-mlx)?-(\d+bit|bf16|fp16)$/i;

/**
 * Where a model's drafter is; null for none.
 * @param model the model's folder
 * @param drafter as in `OpenOptions`
 */
export function drafterPlace(model: string, drafter: string): DrafterPlace | null {
  if (drafter === "none") return null;
  const beside = () =>
    [model, model.replace(bitsSuffix, "")]
      .flatMap((name) => drafterSuffixes.map((suffix) => name + suffix))
      .find((path) => existsSync(path));
  const path = drafter === "auto" ? beside() : modelFolder(drafter);
  return path === undefined
    ? null
    : { openFolder: () => openFolder(path), asked: drafter !== "auto" };
}
