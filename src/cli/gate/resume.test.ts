import { expect, test } from "vitest";
import { choice, failedOf, fake, runResume, shortStory, wasm } from "./resume.cases.ts";

test("passes on wasm, with a process that is killed", { timeout: 400_000 }, async () => {
  const report = await runResume({ open: wasm, choice });
  expect(failedOf(report)).toEqual([]);
  expect(report.not_run).toEqual([]);
  expect(report.backend).toMatch(/^wasm: /);
});

test("in full on a backend that keeps its word, with a text of many chunks", async () => {
  const report = await runResume({ open: fake }, { ...shortStory, long: true }, true);
  // Its replies are no text that calls anything, and its states take no room.
  expect(failedOf(report)).toEqual([expect.stringMatching(/^coverage: /)]);
  const cell = (name: string) => report.cases.find((each) => each.name === name);
  expect(cell("cached, plain: long text edited")!.counts).toMatchObject({ cached: 2048 });
  expect(cell("restarted each time: resent")!.ok).toBe(true);
});
