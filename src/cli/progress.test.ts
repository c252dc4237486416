import { expect, it, vi } from "vitest";
import { systemClock } from "../clock.ts";
import { testIo } from "./io.cases.ts";
import { startProgress } from "./progress.ts";

it("draws a bar on a terminal, and wipes it", () => {
  const io = testIo(true);
  {
    using progress = startProgress(io, "loading", false);
    progress.update(1, 4);
  }
  expect(io.stderr.text).toContain("loading [==========------------------------------] 25 %");
  expect(io.stderr.text).not.toContain("\n");
});

it("writes a line now and then elsewhere, and nothing when quiet", () => {
  const now = vi.spyOn(systemClock, "nowMs").mockReturnValue(0);
  const [io, quiet] = [testIo(), testIo(true)];
  using progress = startProgress(io, "loading", false);
  using silent = startProgress(quiet, "loading", true);
  for (const [ms, done] of [
    [1, 1],
    [5001, 2],
    [6000, 3],
    [10_002, 4],
  ] as const) {
    now.mockReturnValue(ms);
    progress.update(done, 8);
    silent.update(done, 8);
  }
  now.mockRestore();
  expect(io.stderr.text).toBe("loading: 25 %\nloading: 50 %\n");
  expect(quiet.stderr.text).toBe("");
});
