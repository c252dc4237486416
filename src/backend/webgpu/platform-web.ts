import { BackendError } from "../../errors.ts";
import type { GpuPlatform } from "./platform.ts";

/** WebGPU of the browser, which chooses the adapter itself. */
export const webGpuPlatform: GpuPlatform = {
  implementation: "browser",
  missingAdapter: 'Switch on hardware acceleration in the browser, or use backend "wasm".',

  gpu() {
    if (navigator.gpu) return navigator.gpu;
    throw new BackendError(
      'There is no WebGPU here: the browser lacks it, or the page is neither https nor localhost. Use backend "wasm".',
    );
  },

  async adapterNames() {
    return [];
  },
};
