/** All checks that run no code: types, lint and format, layers, unused files, file sizes. */
import { execFileSync } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

process.chdir(fileURLToPath(new URL("..", import.meta.url)));

/** Lines that no source file may exceed. */
const linesMax = 600;

const checks: readonly (readonly [name: string, tool: string, args: readonly string[]])[] = [
  ["types", "typescript/bin/tsc", ["--noEmit"]],
  ["lint and format", "@biomejs/biome/bin/biome", ["check", "--error-on-warnings"]],
  ["layers", "dependency-cruiser/bin/dependency-cruiser.mjs", ["src", "web/src"]],
  ["unused files and packages", "knip/bin/knip.js", []],
];

let failed = 0;
for (const [name, tool, args] of checks) {
  try {
    execFileSync(process.execPath, [`node_modules/${tool}`, ...args], { stdio: "pipe" });
    console.log(`ok    ${name}`);
  } catch (error) {
    const { stdout, stderr } = error as { stdout?: Buffer; stderr?: Buffer };
    console.log(`FAIL  ${name}\n${stdout}${stderr}`);
    failed++;
  }
}

const sources = globSync(["{src,web,scripts,bin,deploy}/**/*.{ts,tsx,js,css}"]);
const long = sources.filter((file) => readFileSync(file, "utf8").split("\n").length > linesMax);
console.log(long.length === 0 ? "ok    file sizes" : `FAIL  over ${linesMax} lines: ${long}`);
process.exitCode = failed > 0 || long.length > 0 ? 1 : 0;
