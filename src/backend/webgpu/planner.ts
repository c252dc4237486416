import type { BackendPlanner } from "../backend.ts";
import { featuresOf, nameOf, requestAdapter } from "./device.ts";
import { planMemory, roomOf } from "./fit.ts";
import type { GpuPlatform } from "./platform.ts";
import { arithmeticFor, checkDrafter, checkKv, checkShape } from "./support.ts";
import type { WebgpuOptions } from "./webgpu.ts";

/** What a GPU's backends share. */
export interface PlannerOptions extends Pick<WebgpuOptions, "activations" | "adapter" | "kv"> {
  readonly platform: GpuPlatform;
  /** What this machine's own memory has, for adapters that compute in it. */
  readonly machineBytes: number | null;
}

/**
 * Plans by what an adapter tells. How much memory a GPU has, WebGPU doesn't tell.
 * @throws BackendError where there is no adapter; InputError for a wrong name, or what it can't compute
 */
export async function webgpuPlanner(options: PlannerOptions): Promise<BackendPlanner> {
  const { platform, activations = "auto", kv = "f32", machineBytes } = options;
  const adapter = await requestAdapter(platform, options.adapter);
  const abilities = {
    features: new Set<string>(featuresOf(adapter)),
    description: nameOf(adapter),
  };
  const arithmetic = arithmeticFor(activations, abilities);
  checkKv(kv, abilities);
  return {
    device: abilities.description,
    roomBytes: adapter.info.isFallbackAdapter ? machineBytes : null,
    async plan(sizes) {
      const drafter = sizes.drafter?.weights.shape;
      checkShape(sizes.weights.shape);
      if (drafter) checkDrafter(drafter, sizes.weights.shape);
      const room = roomOf(adapter.limits, sizes.memoryBytesMax ?? Number.POSITIVE_INFINITY);
      return await planMemory({ ...sizes, arithmetic, kv }, room);
    },
  };
}
