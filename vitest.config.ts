import { defineConfig, type ViteUserConfig } from "vitest/config";

const config: ViteUserConfig = defineConfig({
  test: {
    include: ["src/**/*.test.ts", "web/src/**/*.test.{ts,tsx}"],
    // Two cores: compute threads and workers must not fight each other into timeouts.
    maxWorkers: 2,
    // A software GPU compiles a large kernel for many seconds where nothing is cached yet.
    testTimeout: 300_000,
    hookTimeout: 120_000,
    // Costs of rounds that tests measure are none of the user's.
    env: { XDG_CACHE_HOME: "node_modules/.cache/tests" },
  },
});

export default config;
