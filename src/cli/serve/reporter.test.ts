import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { testServer } from "../../serve/engine.cases.ts";
import { jsonLine, type RequestEntry, textLine } from "../../serve/request-log.ts";
import { Captured } from "../io.cases.ts";
import type { ReportFlags } from "./options.ts";
import { Reporter } from "./reporter.ts";

beforeEach(() => vi.stubEnv("FORCE_COLOR", "0"));
afterEach(() => {
  vi.unstubAllEnvs();
});

const entry = (path: string, status = 200): RequestEntry => ({
  ...{ time: "2025-06-15T15:06:40Z", id: "req_a", method: "GET", path, status, total_ms: 1 },
});

function reporterOf(flags: Partial<ReportFlags>, isTTY: boolean, quiet = false) {
  const output = new Captured(isTTY);
  return { output, reporter: new Reporter(output, { live: true, ...flags }, quiet) };
}

const models = entry("/v1/models");

test.each<[log: ReportFlags["log"], isTTY: boolean, quiet: boolean, expected: string]>([
  [undefined, true, false, `${textLine(models)}\n`],
  [undefined, false, false, ""],
  [undefined, true, true, ""],
  ["off", true, false, ""],
  ["json", true, false, `${jsonLine(models)}\n`],
  ["json", false, false, `${jsonLine(models)}\n`],
  ["text", false, true, `${textLine(models)}\n`],
])("with --log %s, a terminal: %s, quiet: %s", (log, isTTY, quiet, expected) => {
  const { output, reporter } = reporterOf(log ? { log } : {}, isTTY, quiet);
  reporter.onEnd(models);
  expect(output.text).toBe(expected);
});

test("probes are logged where they fail", () => {
  const { output, reporter } = reporterOf({ log: "text" }, false);
  const probes = ["/health", "/health/live", "/health/ready", "/metrics", "/v1/metrics"];
  for (const path of probes) reporter.onEnd(entry(path));
  expect(output.text).toBe("");
  for (const path of probes) reporter.onEnd(entry(path, 503));
  reporter.onEnd(entry("/metricsx"));
  expect(output.text.split("\n")).toHaveLength(probes.length + 2);
});

test("notes are left out where it is to be quiet, failures never", () => {
  const { output, reporter } = reporterOf({}, true, true);
  reporter.note("a note");
  reporter.warn("a warning");
  reporter.report("a failure");
  const error = new Error("it broke");
  reporter.report(error);
  expect(output.text).toBe(`warning: a warning\na failure\n${error.stack}\n`);
});

test("where requests are JSON, so is all else", () => {
  const output = new Captured(false);
  const clock = { nowMs: () => 0, unixSeconds: () => 1_750_000_000 };
  const reporter = new Reporter(output, { live: true, log: "json" }, false, clock);
  const error = new Error("it broke\n\u001b[31m\u2028here");
  reporter.note("a note");
  reporter.warn('a "warning"\r\n');
  reporter.report(error);
  reporter.report("é");
  reporter.onEnd(models);
  expect(output.text).toMatch(/^[\x20-\x7e\n]*$/);
  const time = "2025-06-15T15:06:40Z";
  const lines = output.text.trimEnd().split("\n");
  expect(lines.map((line) => JSON.parse(line))).toEqual([
    { time, level: "info", message: "a note" },
    { time, level: "warning", message: 'a "warning"\r\n' },
    { time, level: "error", message: error.message, stack: error.stack },
    { time, level: "error", message: "é" },
    models,
  ]);
});

const shown = "\r\x1b[2K";

test("the live line stands below all else", () => {
  const { output, reporter } = reporterOf({}, true);
  reporter.watch(testServer().engine);
  expect(output.text).toMatch(/0 running, 0 waiting · \d+\.\d [GM]iB$/);
  reporter.note("a note");
  expect(output.text).toMatch(/a note\n0 running, 0 waiting · \S+ [GM]iB$/);
  reporter[Symbol.dispose]();
  expect(output.text.endsWith(shown)).toBe(true);
  reporter.note("after");
  expect(output.text.endsWith(`${shown}after\n`)).toBe(true);
});

test.each<[what: string, flags: Partial<ReportFlags>, isTTY: boolean, quiet: boolean]>([
  ["a terminal", {}, false, false],
  ["being wanted", { live: false }, true, false],
  ["being loud", {}, true, true],
])("there is none without %s", (_, flags, isTTY, quiet) => {
  const { output, reporter } = reporterOf(flags, isTTY, quiet);
  reporter.watch(testServer().engine);
  reporter[Symbol.dispose]();
  expect(output.text).toBe("");
});
