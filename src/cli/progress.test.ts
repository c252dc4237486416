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

it("gives the bar what room a note leaves", () => {
  const shown = (label: string, note: string) => {
    const io = testIo(true);
    {
      using progress = startProgress(io, label, false, () => note);
      progress.update(1, 4);
    }
    return io.stderr.text;
  };
  expect(shown("pulling", `, ${"n".repeat(50)}`)).toContain(
    `[===---------] 25 %, ${"n".repeat(50)}`,
  );
  const cut = `pulling 25 %, ${"n".repeat(80)}`.slice(0, 79);
  const text = shown("pulling", `, ${"n".repeat(80)}`);
  expect(text).toContain(cut);
  expect(text).not.toContain(`${cut}n`);
});

it("writes a line now and then elsewhere, and nothing when quiet", () => {
  const now = vi.spyOn(systemClock, "nowMs").mockReturnValue(0);
  const [io, quiet] = [testIo(), testIo(true)];
  using progress = startProgress(io, "loading", false, () => ", slowly");
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
  expect(io.stderr.text).toBe("loading: 25 %, slowly\nloading: 50 %, slowly\n");
  expect(quiet.stderr.text).toBe("");
});
