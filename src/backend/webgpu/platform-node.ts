import { createRequire } from "node:module";
import { BackendError, InputError } from "../../errors.ts";
import type { GpuPlatform } from "./platform.ts";

interface Dawn {
  create(options: string[]): GPU;
  readonly globals: Record<string, unknown>;
}

/** NVIDIA's driver has f16, and Dawn hides it unless asked. */
const features = "enable-dawn-features=allow_unsafe_apis,vulkan_enable_f16_on_nvidia";

/**
 * Every object that `create` returned. Dawn crashes or hangs where one is collected while a device of
 * it lives, so they stay for the process's life.
 */
const held: GPU[] = [];

/** WebGPU through Dawn, which is an optional dependency. */
export const nodeGpuPlatform: GpuPlatform = {
  implementation: "Dawn",

  gpu(adapter) {
    const dawn = loadDawn();
    for (const [name, value] of Object.entries(dawn.globals)) {
      if (!(name in globalThis)) Object.defineProperty(globalThis, name, { value });
    }
    const options = adapter === null ? [features] : [features, `adapter=${adapter}`];
    const gpu = dawn.create(options);
    held.push(gpu);
    return gpu;
  },
};

function loadDawn(): Dawn {
  try {
    return createRequire(import.meta.url)("webgpu") as Dawn;
  } catch (cause) {
    const message = "The package webgpu can't be loaded here. Use --backend wasm.";
    throw cause instanceof InputError ? cause : new BackendError(message, cause);
  }
}
