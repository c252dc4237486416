import { defineConfig, type ViteUserConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Files that run on a GPU take longest, whatever their size. Begun first, they leave no worker alone. */
class GpuFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const [gpu = [], others = []] = [true, false].map((onGpu) =>
      sorted.filter(({ moduleId }) => moduleId.includes("webgpu") === onGpu),
    );
    return [...gpu, ...others];
  }
}

const config: ViteUserConfig = defineConfig({
  test: {
    include: ["src/**/*.test.ts", "deploy/**/*.test.ts", "web/src/**/*.test.{ts,tsx}"],
    // Two cores: compute threads and workers must not fight each other into timeouts.
    maxWorkers: 2,
    sequence: { sequencer: GpuFirst },
    // A software GPU compiles a large kernel for many seconds where nothing is cached yet.
    testTimeout: 300_000,
    hookTimeout: 120_000,
    env: {
      // Costs of rounds that tests measure are none of the user's, nor are kernels that Mesa compiled.
      XDG_CACHE_HOME: "node_modules/.cache/tests",
      // Mesa compiles code for vectors of four in half the time that those of eight take.
      LP_NATIVE_VECTOR_WIDTH: "128",
    },
  },
});

export default config;
