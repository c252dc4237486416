/** @module Opens checkpoints and engines in Node. */
import { existsSync } from "node:fs";
import { basename, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { Backend, BackendOptions, BackendPlanner, DrafterOptions } from "./backend/backend.ts";
import { ReferenceBackend } from "./backend/reference/reference.ts";
import { type WasmChoice, wasmPlanner } from "./backend/wasm/fit.ts";
import { nodePlatform } from "./backend/wasm/platform-node.ts";
import { probeKernels } from "./backend/wasm/probe.ts";
import { measureReadBandwidth, type ReadBandwidth } from "./backend/wasm/read-bandwidth.ts";
import { WasmBackend } from "./backend/wasm/wasm.ts";
import type { GpuReport } from "./backend/webgpu/inspect.ts";
import type { WebgpuBackend } from "./backend/webgpu/webgpu.ts";
import { openCheckpoint } from "./checkpoint/checkpoint.ts";
import { openFolder } from "./checkpoint/source-node.ts";
import { costFiles } from "./draft/cost-store-node.ts";
import type { Engine } from "./engine.ts";
import { InputError } from "./errors.ts";
import { promptCacheBytesDefault, threadsMax } from "./limits.ts";
import { freeMemoryBytes } from "./memory-node.ts";
import { type DrafterPlace, openDrafterFor } from "./open-drafter.ts";
import {
  type Activations,
  checkContext,
  checkCount,
  checkPrecision,
  type GpuActivations,
  gpuActivations,
  type KvType,
  type ModelOptions,
  openModel,
} from "./open-model.ts";
import { type ModelPlan, planModel } from "./open-plan.ts";
import { openTokenizer } from "./open-text.ts";
import { packageVersion } from "./package-version-node.ts";
import { spillFiles, spillFolder } from "./state/spill-files-node.ts";
import type { SpillIdentity } from "./state/spill-header.ts";
import { weightsFromCheckpoint } from "./weights/from-checkpoint.ts";
import { withKnownTokens } from "./weights/known-tokens.ts";
import type { Weights } from "./weights/weights.ts";

export type { AdapterReport, GpuReport } from "./backend/webgpu/inspect.ts";
export * from "./index.ts";
export { type DrafterBits, drafterBits } from "./open-drafter.ts";
export type { Activations, KvType, ModelOptions } from "./open-model.ts";
export type { ModelPlan } from "./open-plan.ts";

/** The model that comes with the package. */
export const embeddedModel = "nano";

export type BackendName = "webgpu" | "wasm" | "reference";

export interface BackendChoice {
  readonly backend: BackendName;
  /** Compute threads of the wasm backend. */
  readonly threads: number;
  readonly activations: Activations;
  /** The GPU adapter's place in the list, or part of its name; null takes the first. */
  readonly adapter: string | null;
  /** How the webgpu backend stores keys and values; f32 unless said. */
  readonly kv: KvType;
}

export interface OpenOptions extends Partial<BackendChoice>, ModelOptions {
  /** What the engine calls the model; unless said, as its folder is called. */
  readonly name?: string;
  /** A drafter's name or folder; "auto", unless said, looks beside the model's; "none" takes none. */
  readonly drafter?: string;
  /** Where "auto" looks instead. */
  readonly drafterFolders?: readonly string[];
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
 * @throws InputError for a precision that it doesn't have, MemoryError, BackendError
 */
export async function openBackend(
  options: BackendOptions,
  choice: Partial<BackendChoice> = {},
): Promise<Backend> {
  checkPrecision(choice.backend ?? "wasm", choice);
  const memoryBytesMax = options.memoryBytesMax ?? freeMemoryBytes();
  if (choice.backend === "reference") {
    return await ReferenceBackend.open({ ...options, memoryBytesMax });
  }
  if (choice.backend === "webgpu") return await openWebgpu(options, gpuOf(choice), false);
  const platform = nodePlatform;
  return await WasmBackend.open({ ...options, memoryBytesMax, platform, ...wasmOf(choice) });
}

const gpuOf = ({ adapter = null, activations, kv = "f32" }: Partial<BackendChoice>) => ({
  ...{ adapter, kv },
  activations: gpuActivations(activations),
});

const wasmOf = ({ threads, activations }: Partial<BackendChoice>): WasmChoice => ({
  threads: threads ?? nodePlatform.threads,
  activations: activations === "int8" ? "int8" : "f32",
});

/** Plans what `openBackend` opens; null: only opening a backend tells whether it fits. */
async function plannerOf(choice: Partial<BackendChoice>): Promise<BackendPlanner | null> {
  checkPrecision(choice.backend ?? "wasm", choice);
  const machineBytes = freeMemoryBytes();
  if (choice.backend === "reference") return null;
  if (choice.backend !== "webgpu") return wasmPlanner(wasmOf(choice), machineBytes);
  const { webgpuPlanner } = await import("./backend/webgpu/planner.ts");
  const { nodeGpuPlatform: platform } = await import("./backend/webgpu/platform-node.ts");
  return await webgpuPlanner({ ...gpuOf(choice), platform, machineBytes });
}

/**
 * Plans what `openEngine` would take: it reads the folder's headers and takes nothing.
 * @throws CheckpointError, InputError; BackendError where there is no adapter
 */
export async function planEngine(model: string, options: OpenOptions = {}): Promise<ModelPlan> {
  const path = modelFolder(model);
  const folder = await openFolder(path);
  await using checkpoint = await openCheckpoint(folder);
  const { vocabSize } = await openTokenizer(folder, checkpoint.config.shape.vocabSize);
  const weights = withKnownTokens(await weightsFromCheckpoint(checkpoint), vocabSize);
  const { drafts = true, drafter = "auto", drafterFolders, onWarning = () => {} } = options;
  const place = drafts ? drafterPlace(path, drafter, drafterFolders) : null;
  await using found = place && (await openDrafterFor(place, weights, options, onWarning));
  return await planWeights(weights, found?.options ?? null, options);
}

/** The same of weights that needn't be in a folder. */
export async function planWeights(
  weights: Weights,
  drafter: DrafterOptions | null,
  options: OpenOptions,
): Promise<ModelPlan> {
  checkContext(options.contextTokens, weights.shape.contextMax);
  const planner = await plannerOf(options);
  if (!planner) {
    throw new InputError("The reference backend's memory isn't planned: it is for tests.");
  }
  const defaults = { promptCacheBytes: promptCacheBytesDefault };
  return await planModel({ weights, drafter, options }, defaults, planner);
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
 * @param adapter an adapter's place in the list, or part of its name; null takes the first
 * @throws BackendError where there is none; InputError for a wrong choice
 */
export async function inspectGpu(adapter: string | null): Promise<GpuReport> {
  const gpu = await import("./backend/webgpu/inspect.ts");
  const { nodeGpuPlatform: platform } = await import("./backend/webgpu/platform-node.ts");
  return await gpu.inspectGpu(platform, adapter);
}

/** How fast so many threads read this machine's memory together. */
export const measureCpuRead = (threads: number = nodePlatform.threads): Promise<ReadBandwidth> =>
  measureReadBandwidth(nodePlatform, threads);

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
    freeBytes: freeMemoryBytes(),
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
    model: options.name ?? basename(path),
    drafter: drafterPlace(path, options.drafter ?? "auto", options.drafterFolders),
    costs,
    spill: {
      files: (identity: SpillIdentity) => spillFiles(options.spillFolder ?? spillFolder(identity)),
      build: costs.build,
    },
    promptCacheBytes: promptCacheBytesDefault,
    planner: () => plannerOf(options),
    openBackend: (sizes: BackendOptions) => openBackend(sizes, options),
  };
  return await openModel(parts, options);
}

/** What a drafter's folder is called, after its model's. */
const drafterSuffixes = ["-dflash2", "-DFlash2", "-dflash", "-DFlash"];
/** What a quantised model's folder is called, after the model's own, for which the drafter was made. */
const bitsSuffix = /(-mlx)?-(\d+bit|bf16|fp16)$/i;

/** What the drafters of a model, or of a model's folder, may be called. */
export const drafterNames = (model: string): string[] =>
  [model, model.replace(bitsSuffix, "")].flatMap((name) =>
    drafterSuffixes.map((suffix) => name + suffix),
  );

/**
 * Where a model's drafter is; null for none.
 * @param model the model's folder
 * @param drafter as in `OpenOptions`
 * @param folders where "auto" looks
 */
export function drafterPlace(
  model: string,
  drafter: string,
  folders: readonly string[] = drafterNames(model),
): DrafterPlace | null {
  if (drafter === "none") return null;
  const path =
    drafter === "auto" ? folders.find((folder) => existsSync(folder)) : modelFolder(drafter);
  return path === undefined
    ? null
    : { openFolder: () => openFolder(path), asked: drafter !== "auto" };
}
