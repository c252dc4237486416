/**
 * `npm run nightly`: what is too long for `npm test`: every gate in full, on both CPU backends, kills of
 * pulls and conversions at many points, and of a batch's workers, the container, and what changed files
 * take. Arguments go to each gate: `-- --shard 1/4` runs a quarter of the cells.
 */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

process.chdir(fileURLToPath(new URL("..", import.meta.url)));

const runs = [
  ["golden", "wasm", "--full"],
  ["chunks", "wasm", "--full"],
  ["rows", "wasm", "--full"],
  ["synthetic", "wasm", "--full"],
  ["drafted", "wasm", "--full"],
  ["streams", "wasm", "--full"],
  ["resume", "wasm", "--full"],
  ["http", "wasm", "--full"],
  ["chunks", "wasm", "--activations", "int8"],
  ["rows", "wasm", "--activations", "int8"],
  ["drafted", "wasm", "--activations", "int8"],
  ["streams", "wasm", "--activations", "int8"],
  ["resume", "wasm", "--activations", "int8"],
  ["golden", "reference", "--full"],
  ["chunks", "reference"],
  ["rows", "reference", "--full"],
  ["synthetic", "reference"],
  ["drafted", "reference"],
  ["streams", "reference"],
  ["http", "reference"],
];

let failed = 0;
for (const [gate, backend, ...flags] of runs) {
  const args = [
    "bin/deltafold.js",
    "gate",
    gate!,
    "--backend",
    backend!,
    ...flags,
    ...process.argv.slice(2),
  ];
  console.log(`deltafold ${args.slice(1).join(" ")}`);
  const { status, stdout } = spawnSync(process.execPath, args, {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
  });
  // A cell a line is too much here; failures and the verdict are what counts.
  const lines = stdout.trimEnd().split("\n");
  console.log(lines.filter((line) => line.startsWith("FAIL")).join("\n") + lines.at(-1));
  if (status !== 0) failed++;
}
const others = [
  ["scripts/kill-pull.ts"],
  ["scripts/convert-kill.ts"],
  ["scripts/batch-kill.ts"],
  ["scripts/container-root.ts"],
  ["--expose-gc", "--max-semi-space-size=64", "scripts/fuzz.ts"],
];
for (const args of others) {
  console.log(args.at(-1));
  if (spawnSync(process.execPath, args, { stdio: "inherit" }).status !== 0) failed++;
}
console.log(`${runs.length + others.length - failed} passed, ${failed} failed`);
process.exitCode = failed > 0 ? 1 : 0;
