/** `npm test`: builds, checks and runs every test; the last line counts them. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { installLavapipe } from "./install-lavapipe.ts";

process.chdir(fileURLToPath(new URL("..", import.meta.url)));

function run(args: readonly string[]): boolean {
  return spawnSync(process.execPath, args, { stdio: "inherit" }).status === 0;
}

if (!run(["scripts/build.ts"])) process.exit(1);
installLavapipe();
// Silences Mesa where no desktop session gives it a folder.
process.env["XDG_RUNTIME_DIR"] ??= tmpdir();
const checked = run(["scripts/check.ts"]);

const folder = mkdtempSync(join(tmpdir(), "deltafold-test-"));
const report = join(folder, "report.json");
const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${report}`];
const tested = run(["node_modules/vitest/vitest.mjs", "run", ...reporters]);
const counts: {
  numPassedTests: number;
  numFailedTests: number;
  numFailedTestSuites: number;
  numPendingTests: number;
  numTodoTests: number;
} = JSON.parse(readFileSync(report, "utf8"));
rmSync(folder, { recursive: true });

// The checks count as one test, and so does a file that could not even be read.
const failures = counts.numFailedTests + (checked ? 0 : 1);
const failed = tested || failures > 0 ? failures : Math.max(1, counts.numFailedTestSuites);
const passed = counts.numPassedTests + (checked ? 1 : 0);
const skipped = counts.numPendingTests + counts.numTodoTests;
console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
process.exitCode = failed > 0 ? 1 : 0;
