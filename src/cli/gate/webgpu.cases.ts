import { sharedGpu } from "../../backend/webgpu/gpu.cases.ts";
import { WebgpuBackend } from "../../backend/webgpu/webgpu.ts";
import type { Opener } from "./faulty.cases.ts";

/** The first GPU there is, computing in f32. */
export const webgpu: Opener = (options) =>
  WebgpuBackend.open({
    ...options,
    platform: sharedGpu,
    adapter: null,
    synthetic: false,
    activations: "f32",
  });
