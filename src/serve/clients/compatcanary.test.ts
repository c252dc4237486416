import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { Listener } from "../../cli/serve/listener.ts";
import { openEngine } from "../../node.ts";
import { createApp } from "../app.ts";

const engine = await openEngine("nano", { parallel: 2, spillBytes: 0 });
const reported: unknown[] = [];
const app = createApp({ engine, report: (error) => reported.push(error) });
const listener = await Listener.open("127.0.0.1", 0, app.fetch);
afterAll(async () => {
  await engine[Symbol.asyncDispose]();
  await listener[Symbol.asyncDispose]();
  expect(reported).toEqual([]);
});

const program = fileURLToPath(new URL("cli.js", import.meta.resolve("compatcanary")));

interface Report {
  readonly results: readonly {
    readonly id: string;
    readonly status: string;
    readonly summary: string;
  }[];
}

/** What a scan of the server says, with what a machine under load may need. */
async function scan(profile: string): Promise<Report> {
  const options = ["--model", "nano", "--profile", profile, "--timeout", "240", "--format", "json"];
  const args = [program, "scan", "--base-url", `${listener.url}/v1`, "--fail-on", "never"];
  const { stdout } = await promisify(execFile)(process.execPath, [...args, ...options]);
  return JSON.parse(stdout) as Report;
}

test.each(["chat", "modern"])("compatcanary finds nothing, by the profile %s", async (profile) => {
  const { results } = await scan(profile);
  expect(results.filter(({ status }) => status !== "pass")).toEqual([]);
});
