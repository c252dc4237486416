import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Alarms } from "../../serve/alarms.cases.ts";
import { testServer } from "../../serve/engine.cases.ts";
import { Captured } from "../io.cases.ts";
import { LiveLine, type LiveLineParts } from "./live-line.ts";

const none = testServer().engine.totals;

beforeEach(() => vi.stubEnv("FORCE_COLOR", "0"));
afterEach(() => {
  vi.unstubAllEnvs();
});

/** A line over figures that a test sets; a second passes with each `tick`. */
function lineOf(output: Captured) {
  const alarms = new Alarms();
  let nowMs = 0;
  const engine = { counts: { running: 0, waiting: 0 }, totals: none };
  const parts: LiveLineParts = {
    ...{ engine, setAlarm: alarms.set, clock: { nowMs: () => nowMs, unixSeconds: () => 0 } },
    residentBytes: () => 3 * 2 ** 29,
  };
  const line = new LiveLine(output, parts);
  const tick = () => {
    nowMs += 1000;
    alarms.pass(1000);
  };
  return { line, engine, alarms, tick };
}

/** What a terminal shows after all of this: its lines, the last without an end. */
function screen(written: string): string[] {
  return written.split("\n").map((line) => line.split("\r\x1b[2K").at(-1)!);
}

test("says each second how it stands, in the same line", () => {
  const output = new Captured(true);
  const { engine, tick } = lineOf(output);
  expect(screen(output.text)).toEqual(["0 running, 0 waiting · 1.5 GiB"]);
  engine.counts = { running: 2, waiting: 1 };
  engine.totals = { ...none, replyTokens: 143, decodeRounds: 60, roundTokens: 141 };
  tick();
  expect(screen(output.text)).toEqual([
    "2 running, 1 waiting · 143.0 tok/s · 2.35 tokens a round · 1.5 GiB",
  ]);
  // A long prompt is computed, and nothing comes of it yet.
  tick();
  expect(screen(output.text)).toEqual(["2 running, 1 waiting · 1.5 GiB"]);
  engine.totals = { ...engine.totals, replyTokens: 144 };
  tick();
  expect(screen(output.text)).toEqual(["2 running, 1 waiting · 1.0 tok/s · 1.5 GiB"]);
});

test("what else is printed stays above it", () => {
  const output = new Captured(true);
  const { line, tick } = lineOf(output);
  line.print("first\n");
  expect(screen(output.text)).toEqual(["first", "0 running, 0 waiting · 1.5 GiB"]);
  tick();
  line.print("second\nthird\n");
  expect(screen(output.text)).toEqual([
    ...["first", "second", "third", "0 running, 0 waiting · 1.5 GiB"],
  ]);
});

test("it is gone at the end, and so is its alarm", () => {
  const output = new Captured(true);
  const { line, alarms } = lineOf(output);
  line.print("last\n");
  line[Symbol.dispose]();
  expect(screen(output.text)).toEqual(["last", ""]);
  expect(alarms.count).toBe(0);
});

test("it never wraps", () => {
  const output = Object.assign(new Captured(true), { columns: 20 });
  lineOf(output);
  expect(screen(output.text)).toEqual(["0 running, 0 waitin"]);
});

test("it is dimmed where colours are wanted", () => {
  vi.stubEnv("FORCE_COLOR", "1");
  const output = new Captured(true);
  lineOf(output);
  expect(output.text).toBe("\r\x1b[2K\x1b[2m0 running, 0 waiting · 1.5 GiB\x1b[22m");
});
