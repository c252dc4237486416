/** @module Opens engines in a browser. */
import type { Backend, BackendOptions } from "./backend/backend.ts";
import { wasmPlanner } from "./backend/wasm/fit.ts";
import { checkThreads, webPlatform } from "./backend/wasm/platform-web.ts";
import { WasmBackend } from "./backend/wasm/wasm.ts";
import { webgpuPlanner } from "./backend/webgpu/planner.ts";
import { webGpuPlatform } from "./backend/webgpu/platform-web.ts";
import { WebgpuBackend } from "./backend/webgpu/webgpu.ts";
import type { Engine } from "./engine.ts";
import { InputError } from "./errors.ts";
import { kvBytesWeb, promptCacheBytesWeb, threadsMax } from "./limits.ts";
import {
  type Activations,
  checkCount,
  checkPrecision,
  gpuActivations,
  type KvType,
  type ModelOptions,
  openModel,
} from "./open-model.ts";
import { chooseBackend } from "./web/choose.ts";
import { httpFolder } from "./web/http-folder.ts";
import { openCache } from "./web/opfs.ts";

export * from "./index.ts";
export type { Activations, KvType, ModelOptions } from "./open-model.ts";
export { clearCache } from "./web/opfs.ts";

export type BackendName = "webgpu" | "wasm";

export interface OpenOptions extends ModelOptions {
  /** `auto`, the default, takes webgpu where there is a GPU, else wasm. */
  readonly backend?: BackendName | "auto";
  /** Compute threads of the wasm backend: the cores, or 1 on a page that isn't isolated. */
  readonly threads?: number;
  /**
   * What matmuls read: f32; int8 with the backend wasm; f16 with webgpu, whose own choice is f16 where
   * there is a matrix unit, else f32.
   */
  readonly activations?: Activations;
  /** How keys and values are stored: f32 unless said, or f16 with the backend webgpu. */
  readonly kv?: KvType;
  /** Whether files are kept for the next time, in the origin's private file system; true unless said. */
  readonly cache?: boolean;
  /** The URL of the drafter's folder, absolute or relative to the page; without one, only copies are drafted. */
  readonly drafter?: string | URL;
}

/**
 * Loads the checkpoint folder at a URL: its files, tokenizer, template and backend.
 * @param url of the folder, absolute or relative to the page
 * @throws CheckpointError, InputError, MemoryError, BackendError
 */
export async function openEngine(url: string | URL, options: OpenOptions = {}): Promise<Engine> {
  const threads = options.threads ?? Math.min(webPlatform.threads, threadsMax);
  checkCount("threads", threads, threadsMax);
  checkThreads(threads);
  const asked = options.backend ?? "auto";
  checkPrecision(asked, options);
  const base = addressOf(url);
  const cache = options.cache === false ? null : await openCache();
  const backend = asked === "auto" ? await chooseBackend(navigator.gpu) : asked;
  const gpu = {
    ...{ platform: webGpuPlatform, adapter: null, kv: options.kv ?? "f32" },
    activations: gpuActivations(options.activations),
  };
  const cpu = { threads, activations: options.activations === "int8" ? "int8" : "f32" } as const;
  // How much memory a page may take, no browser tells.
  const planner = async () =>
    backend === "webgpu"
      ? await webgpuPlanner({ ...gpu, machineBytes: null })
      : wasmPlanner(cpu, null);
  const open = async (sizes: BackendOptions): Promise<Backend> =>
    backend === "webgpu"
      ? await WebgpuBackend.open({ ...sizes, ...gpu, synthetic: false })
      : await WasmBackend.open({ ...sizes, ...cpu, platform: webPlatform });
  const model = base.pathname.split("/").findLast((part) => part !== "") ?? base.host;
  const drafter = options.drafter === undefined ? null : addressOf(options.drafter);
  const parts = {
    folder: httpFolder(base, cache),
    model,
    drafter: drafter && { openFolder: async () => httpFolder(drafter, cache), asked: true },
    costs: null,
    spill: null,
    promptCacheBytes: promptCacheBytesWeb,
    kvBytes: kvBytesWeb,
    planner,
    openBackend: open,
  };
  return await openModel(parts, options);
}

function addressOf(url: string | URL): URL {
  const base = globalThis.location?.href;
  try {
    return new URL(url, base);
  } catch {
    throw new InputError(`${JSON.stringify(String(url))} is not the URL of a checkpoint folder.`);
  }
}
