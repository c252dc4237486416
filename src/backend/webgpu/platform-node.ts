import { createRequire } from "node:module";
import { BackendError, InputError } from "../../errors.ts";
import { adapterOptions, type GpuPlatform } from "./platform.ts";

/** Dawn lists its adapters in the error for a name that none has. */
const nobody = "no adapter has this name";

interface Dawn {
  create(options: string[]): GPU;
  readonly globals: Record<string, unknown>;
}

/**
 * Toggles of Dawn. NVIDIA's driver has f16, which Dawn hides, and a matrix unit, which it calls unsafe.
 * Every kernel is ours and stays within its buffers, so that checks of every index would only cost
 * time (docs/adr/0011-tiles-in-f16.md).
 */
const features =
  "enable-dawn-features=allow_unsafe_apis,vulkan_enable_f16_on_nvidia,disable_robustness";

/**
 * Every object that `create` returned. Dawn crashes or hangs where one is collected while a device of
 * it lives, so they stay for the process's life.
 */
const held: GPU[] = [];

/** WebGPU through Dawn, which is an optional dependency. */
export const nodeGpuPlatform: GpuPlatform = {
  implementation: "Dawn",
  missingAdapter:
    process.platform === "linux"
      ? "Install the GPU's Vulkan driver and the loader (Debian: libvulkan1, and nvidia-vulkan-icd or " +
        "mesa-vulkan-drivers of Mesa 23 or newer), or use --backend wasm."
      : "Install the GPU's driver, or use --backend wasm.",

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

  async adapterNames() {
    try {
      await this.gpu(nobody).requestAdapter(adapterOptions);
    } catch (cause) {
      return [...String(cause).matchAll(/name: '(.*)'/g)].map(([, name]) => name!);
    }
    return [];
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
