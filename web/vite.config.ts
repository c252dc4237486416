/** Builds the pages that the server shows at `/` and `/dashboard`, into dist/page/. */
import { fileURLToPath } from "node:url";
import { defineConfig, type UserConfig } from "vite";

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

const config: UserConfig = defineConfig({
  root: here("."),
  // Proxies may put the server below a path of theirs.
  base: "./",
  publicDir: false,
  logLevel: "warn",
  build: {
    outDir: here("../dist/page"),
    emptyOutDir: true,
    target: "es2023",
    // Every browser that runs the rest knows it.
    modulePreload: { polyfill: false },
    // The page's policy takes files of the server alone.
    assetsInlineLimit: 0,
    rolldownOptions: { input: [here("index.html"), here("dashboard.html")] },
  },
});

export default config;
