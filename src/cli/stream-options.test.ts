import { Command } from "commander";
import { describe, expect, it } from "vitest";
import { runLine } from "./io.cases.ts";
import { addServingOptions, type ServingFlags, servingOptions } from "./stream-options.ts";

const optionsOf = (...args: string[]) =>
  servingOptions(
    addServingOptions(new Command()).parse(args, { from: "user" }).opts<ServingFlags>(),
  );

const unsaid = { parallel: "auto", queueMax: 64, decodeShare: 0.25, spillBytes: 0 };

describe("the flags of serving", () => {
  it.each([
    [[], unsaid],
    [["--parallel", "auto"], unsaid],
    [["--parallel", "3"], { ...unsaid, parallel: 3 }],
    [["--kv-gib", "1.5"], { ...unsaid, kvBytes: 1.5 * 2 ** 30 }],
    [["--prompt-cache-gib", "0"], { ...unsaid, promptCacheBytes: 0 }],
    [["--queue", "0"], { ...unsaid, queueMax: 0 }],
    [["--decode-share", "0"], { ...unsaid, decodeShare: 0 }],
    [["--spill-gib", "8"], { ...unsaid, spillBytes: 8 * 2 ** 30 }],
    [
      ["--spill-gib", "8", "--spill-dir", "cache"],
      { ...unsaid, spillBytes: 8 * 2 ** 30, spillFolder: "cache" },
    ],
  ])("%j", (args, options) => {
    expect(optionsOf(...args)).toEqual(options);
  });

  it.each([
    [["--spill-dir", "x"], "--spill-dir needs --spill-gib: how much may lie there."],
    [
      ["--spill-gib", "1", "--prompt-cache-gib", "0"],
      "--spill-gib takes what --prompt-cache-gib has no room for, which is 0.",
    ],
    [["--parallel", "0"], "It must be a whole number from 1 to 128."],
    [["--parallel", "many"], "It must be a whole number from 1 to 128."],
    [["--queue", "-1"], "It must be a whole number of at least 0."],
    [["--decode-share", "1"], "It must be a number from 0 to below 1."],
    [["--kv-gib", "x"], "It must be a number of at least 0."],
  ])("%j is refused", async (args, message) => {
    const { code, stdout, stderr } = await runLine(["serve", ...args]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toMatch(/^deltafold: .*\n$/);
    expect(stderr).toContain(message);
  });

  it("knows none of a queue where there is one request", async () => {
    for (const flag of ["--parallel", "--queue", "--decode-share", "--kv-gib"]) {
      const { code, stderr } = await runLine(["run", "-p", "x", flag, "1"]);
      expect(code).toBe(1);
      expect(stderr).toContain(`unknown option '${flag}'`);
    }
    const { stderr } = await runLine(["run", "-p", "x", "--spill-dir", "x"]);
    expect(stderr).toContain("--spill-dir needs --spill-gib");
  });
});
