import { expect, test } from "vitest";
import { tinyShape } from "../../model/tiny-shape.ts";
import { randomWeights } from "../../weights/random.ts";
import { backendCases } from "../backend.cases.ts";
import type { BackendOptions } from "../backend.ts";
import { modelCases, worstDifference } from "../models.cases.ts";
import { sharedGpu, tinyWeights } from "./gpu.cases.ts";
import type { Arithmetic } from "./projection-layout.ts";
import { WebgpuBackend, type WebgpuOptions } from "./webgpu.ts";

export const choice: Pick<WebgpuOptions, "platform" | "adapter" | "synthetic" | "taps"> = {
  platform: sharedGpu,
  adapter: null,
  synthetic: false,
  taps: [],
};

/** What holds in each class. They are in files of their own, which run side by side. */
export function arithmeticCases(activations: Arithmetic): void {
  // These models magnify a rounding a hundredfold; project-tiles.test.ts is strict about the kernel.
  const bound = activations === "f16" ? 0.1 : 2e-4;
  const open = (options: BackendOptions) =>
    WebgpuBackend.open({ ...options, ...choice, activations });

  backendCases({
    name: `webgpu ${activations}`,
    open: (sizes) => open({ ...sizes, taps: [], weights: tinyWeights }),
    openChanged: (sizes, change) => open({ ...sizes, taps: [], weights: change(tinyWeights) }),
  });

  for (const [changes, [bits, groupSize]] of modelCases) {
    const weights = randomWeights(tinyShape(changes), { seed: 11, bits, groupSize });
    const name = `${bits} g${groupSize} ${JSON.stringify(changes)}`;
    test(`webgpu ${activations} equals reference: ${name}`, async () => {
      expect(await worstDifference(weights, open)).toBeLessThan(bound);
    });
  }

  test(`webgpu ${activations}: formats may differ among matrices that share an input`, async () => {
    const shape = tinyShape({ headDim: 64, rotaryDim: 16, kvHeadCount: 1, headCount: 2 });
    const weights = randomWeights(shape, { seed: 11, bits: 4, groupSize: 32 });
    const wide = randomWeights(shape, { seed: 11, bits: 8, groupSize: 32 });
    const mixed = {
      ...weights,
      matrix: (path: string) => (/v_proj|in_proj_z/.test(path) ? wide : weights).matrix(path),
    };
    expect(await worstDifference(mixed, open)).toBeLessThan(bound);
  });
}
