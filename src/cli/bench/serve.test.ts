import { expect, test } from "vitest";
import { runLine } from "../io.cases.ts";
import type { ServeBenchReport } from "./serve-report.ts";

test("replies, prompts and streams of a server are measured, and compared", async () => {
  const sizes = ["--context", "512", "--tokens", "6", "--streams", "2", "--prefill", "40,512"];
  const flags = ["--threads", "1", "--repeats", "2", "--alone", "--serial", "--json"];
  const { code, stdout, stderr } = await runLine(["bench", "serve", ...sizes, ...flags]);
  expect(code).toBe(0);
  expect(stderr).toBe("warming up\nrepeat 1 of 2\nrepeat 2 of 2\n");
  const report: ServeBenchReport = JSON.parse(stdout);
  expect(report).toMatchObject({ bench: "serve", model: "nano", repeats: 2 });
  expect(report.backend).toMatch(/^wasm: 1 thread/);
  const names = ["copy", "arithmetic", "story", "code"];
  expect(report.replies.map(({ name }) => name)).toEqual(names.flatMap((name) => [name, name]));
  for (const { drafted, equal, tokens, tokens_per_round: round, of_plain } of report.replies) {
    expect([equal, tokens]).toEqual([true, 6]);
    if (!drafted) expect([round, of_plain]).toEqual([1, 1]);
  }
  expect(report.prefill.map(({ tokens }) => tokens)).toEqual([40]);
  expect(report.not_run).toEqual(["prefill of 512: the context has 512 tokens"]);
  const streams = [1, 2].flatMap((count) => [count, count]);
  expect(report.streams.map((each) => each.streams).sort()).toEqual(streams);
  for (const each of report.streams) {
    expect(each).toMatchObject({ equal_alone: true, equal_serial: true });
    expect(each.tokens_per_second.median).toBeGreaterThan(0);
  }
});

test.each([
  [["--prefill", "64,0"], /--prefill .*whole numbers over 0, apart by commas, or none/],
  [["--prefill", "6 4"], /--prefill .*whole numbers over 0/],
  [["--tokens", "1"], /--tokens .*at least 2/],
  [["--against", "/nowhere"], /--against \/nowhere: no build of deltafold: .*main\.js/],
  [["--no-drafts"], /no --no-drafts/],
  [["--shape", "2b"], /no --shape/],
  [["--context", "9999999"], /serve .* ended with 1: .*The context must be 1 to/],
])("what can't be measured is refused: %j", async (flags, message) => {
  const { code, stdout, stderr } = await runLine(["bench", "serve", ...flags]);
  expect([code, stdout]).toEqual([1, ""]);
  expect(stderr).toMatch(message);
});
