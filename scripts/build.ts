/**
 * Builds dist/: the kernels (AssemblyScript → WebAssembly, with and without relaxed SIMD), the package
 * (TypeScript → JavaScript), and the pages of web/ (static files). Does nothing where dist/ is newer than
 * everything it is made of.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { writeKernelSources } from "./kernel-sources.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
process.chdir(root);
const stamp = "dist/.stamp";

/** A digest of every file that the build reads. */
function sources(): string {
  const digest = createHash("sha256");
  for (const file of globSync([
    "src/**/*.ts",
    "web/**/*.{ts,tsx,css,html,svg}",
    "scripts/build.ts",
    "tsconfig*.json",
    "package-lock.json",
  ]).sort()) {
    if (/\.test\.tsx?$/.test(file)) continue;
    digest.update(file).update("\0").update(readFileSync(file)).update("\0");
  }
  return digest.digest("hex");
}

function run(tool: string, args: readonly string[]): void {
  execFileSync(process.execPath, [`node_modules/${tool}`, ...args], { stdio: "inherit" });
}

function buildKernels(name: string, features: string): void {
  const options = [
    ["--outFile", `dist/wasm/${name}.wasm`],
    ["-O3", "--noAssert", "--runtime", "stub"],
    ["--importMemory", "--sharedMemory", "--initialMemory", "1", "--maximumMemory", "65536"],
    ["--enable", features],
    // Vectors pass between our own functions only, never to JavaScript.
    ["--disableWarning", "112"],
  ];
  run("assemblyscript/bin/asc.js", ["src/backend/wasm/kernels/index.ts", ...options.flat()]);
}

writeKernelSources();
const digest = sources();
const outputs = [
  "dist/cli/main.js",
  "dist/wasm/kernels.wasm",
  "dist/wasm/kernels-relaxed.wasm",
  "dist/page/index.html",
];
const current = existsSync(stamp) && readFileSync(stamp, "utf8") === digest;
if (current && outputs.every((file) => existsSync(file))) process.exit(0);
const start = performance.now();
rmSync("dist", { recursive: true, force: true });
mkdirSync("dist/wasm", { recursive: true });
buildKernels("kernels", "simd,threads,bulk-memory");
buildKernels("kernels-relaxed", "simd,threads,bulk-memory,relaxed-simd");
run("typescript/bin/tsc", ["-p", "tsconfig.build.json"]);
// Vite would bundle its own configuration first; Node reads it as it is.
run("vite/bin/vite.js", ["build", "--config", "web/vite.config.ts", "--configLoader", "native"]);
writeFileSync(stamp, digest);
console.log(`built dist/ in ${((performance.now() - start) / 1000).toFixed(1)} s`);
