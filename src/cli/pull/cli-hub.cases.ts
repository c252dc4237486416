import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { vi } from "vitest";
import { HubBench } from "../../hub/hub.cases.ts";
import { modelFolder } from "../../node.ts";
import { type TestIo, testIo } from "../io.cases.ts";
import { runProgram } from "../program.ts";

/** An embedded model's or drafter's files. */
export function embeddedFiles(model: string): Map<string, Uint8Array> {
  const folder = modelFolder(model);
  return new Map(readdirSync(folder).map((path) => [path, readFileSync(join(folder, path))]));
}

/** A hub and an empty cache, which the environment names; `vi.unstubAllEnvs` takes that back. */
export async function openCliHub(): Promise<HubBench> {
  const bench = await HubBench.open();
  vi.stubEnv("HF_HUB_CACHE", bench.cache);
  vi.stubEnv("HF_ENDPOINT", bench.server.url);
  vi.stubEnv("HF_TOKEN", "hf_test");
  vi.stubEnv("HF_HUB_OFFLINE", undefined);
  return bench;
}

/** Runs a command line at a terminal whose user answers once they are asked. */
export async function answered(
  args: readonly string[],
  answer: (io: TestIo) => void,
): Promise<{ code: number; stdout: string; stderr: string }> {
  const io = testIo(true);
  const code = runProgram(args, io);
  await Promise.race([io.stderr.until("/n] ").catch(() => {}), io.stderr.until("/N] "), code]);
  answer(io);
  return { code: await code, stdout: io.stdout.text, stderr: io.stderr.text };
}
