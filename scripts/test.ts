/** `npm test`: builds, checks and runs every test; the last line counts them. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { installChromium } from "./install-chromium.ts";
import { installHaproxy } from "./install-haproxy.ts";
import { installLavapipe } from "./install-lavapipe.ts";
import { installQueue } from "./install-queue.ts";

process.chdir(fileURLToPath(new URL("..", import.meta.url)));

/**
 * What runs on SwiftShader too, the GPU without f16 and with the least of everything: the cases that
 * hold a kernel to its order of sums, models of three formats, and tensors in parts. It compiles and
 * computes slowly, and all tests there would take an hour.
 */
const onSwiftShader = [
  "f32: streams that share a pass equal streams alone",
  "f32: a moved state equals one that stayed",
  "f32: passes of other slots may come before a keep",
  "f32: a row that isn't finite fails alone",
  "f32 equals reference: (2 g32|4 g128|bf16 g32 {.hiddenSize)",
  "f32: tensors that are split at the binding limit",
];
const swiftShaderFiles = ["webgpu", "limits"].map((name) => `src/backend/webgpu/${name}.test.ts`);

interface Report {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly numFailedTestSuites: number;
  readonly numPendingTests: number;
  readonly numTodoTests: number;
  readonly testResults: readonly {
    readonly assertionResults: readonly { readonly fullName: string; readonly status: string }[];
  }[];
}

interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

function run(args: readonly string[], env: NodeJS.ProcessEnv = {}): boolean {
  const options = { stdio: "inherit", env: { ...process.env, ...env } } as const;
  return spawnSync(process.execPath, args, options).status === 0;
}

/** Runs vitest. A file that could not even be read counts as one that failed. */
function vitest(
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
): { counts: Counts; report: Report } {
  const folder = mkdtempSync(join(tmpdir(), "deltafold-test-"));
  const file = join(folder, "report.json");
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${file}`];
  const tested = run(["node_modules/vitest/vitest.mjs", "run", ...reporters, ...args], env);
  const report: Report = JSON.parse(readFileSync(file, "utf8"));
  rmSync(folder, { recursive: true });
  const failed = report.numFailedTests;
  const counts = {
    passed: report.numPassedTests,
    failed: tested || failed > 0 ? failed : Math.max(1, report.numFailedTestSuites),
    skipped: report.numPendingTests + report.numTodoTests,
  };
  return { counts, report };
}

/**
 * The tests on SwiftShader; one that is skipped where it isn't there. A pattern by which nothing passes
 * counts as a test that failed: nothing is left where SwiftShader fails to load, or a test is renamed.
 */
function vitestOnSwiftShader(icd: string | undefined): Counts {
  if (icd === undefined) return { passed: 0, failed: 0, skipped: 1 };
  const pattern = `(${onSwiftShader.join("|")})`;
  const args = [...swiftShaderFiles, "--testNamePattern", pattern, "--testTimeout", "300000"];
  const { counts, report } = vitest(args, { VK_DRIVER_FILES: icd, VK_ICD_FILENAMES: icd });
  const tests = report.testResults.flatMap(({ assertionResults }) => assertionResults);
  const named = (each: string) => tests.filter(({ fullName }) => new RegExp(each).test(fullName));
  const without = onSwiftShader.filter(
    (each) => !named(each).some(({ status }) => status === "passed"),
  );
  for (const each of without) console.error(`On SwiftShader no test passed by the name ${each}`);
  // What the pattern leaves out is told as skipped too, but has run on the first GPU.
  const ended = ["passed", "failed"];
  const skipped = named(pattern).filter(({ status }) => !ended.includes(status)).length;
  return { passed: counts.passed, failed: counts.failed + without.length, skipped };
}

/** Counts as one test; as one that is skipped where HAProxy isn't there. */
function replicas(): Counts {
  if (!installHaproxy()) return { passed: 0, failed: 0, skipped: 1 };
  const passed = run(["scripts/test-replicas.ts"]);
  return { passed: passed ? 1 : 0, failed: passed ? 0 : 1, skipped: 0 };
}

if (!run(["scripts/build.ts"])) process.exit(1);
installLavapipe();
installChromium();
installQueue();
// Silences Mesa where no desktop session gives it a folder.
process.env["XDG_RUNTIME_DIR"] ??= tmpdir();
// Each of these counts as one test.
const whole = [run(["scripts/check.ts"]), run(["scripts/sim.ts", "--seeds", "10000"])];

const counts = [
  ...whole.map((passed) => ({ passed: passed ? 1 : 0, failed: passed ? 0 : 1, skipped: 0 })),
  vitest([]).counts,
  vitestOnSwiftShader(process.env["DELTAFOLD_SWIFTSHADER_ICD"]),
  replicas(),
];
const sum = (name: keyof Counts) => counts.reduce((total, each) => total + each[name], 0);
console.log(`${sum("passed")} passed, ${sum("failed")} failed, ${sum("skipped")} skipped`);
process.exitCode = sum("failed") > 0 ? 1 : 0;
