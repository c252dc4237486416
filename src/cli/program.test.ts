import { describe, expect, it } from "vitest";
import { runLine } from "./io.cases.ts";

describe("the command line", () => {
  it("prints its version and its help to standard output", async () => {
    const version = await runLine(["--version"]);
    expect(version).toMatchObject({ code: 0, stderr: "" });
    expect(version.stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
    const help = await runLine(["--help"]);
    expect(help).toMatchObject({ code: 0, stderr: "" });
    expect(help.stdout).toMatch(/run .*serve .*show .*convert .*Examples:/s);
  });

  it.each([
    [["bogus"], "deltafold: unknown command 'bogus'"],
    [["run", "--temperture", "1"], "deltafold: unknown option '--temperture'"],
    [["run", "--top-k", "1e9x"], "deltafold: option '--top-k <k>' argument '1e9x' is invalid."],
    [["run", "--max-tokens", ""], "deltafold: option '--max-tokens <n>' argument '' is invalid."],
    [["run", "--backend", "cuda"], "Allowed choices are auto, webgpu, wasm, reference."],
    [["run", "--backend", "webgpu", "--threads", "2"], "are wasm's, not webgpu's"],
    [["run", "--backend", "reference", "--threads", "2"], "are wasm's, not reference's"],
    [["run", "--adapter", "llvmpipe"], "--adapter chooses a GPU: it goes with --backend webgpu."],
    [["run", "--kv", "f16"], "--kv f16 goes with --backend webgpu."],
    [["run", "--ids", "[1]", "-p", "x"], "cannot be used with option '-p, --prompt <text>'"],
    [["run", "nano", "more"], "deltafold: too many arguments for 'run'"],
    [["run", "-p", ""], "deltafold: The prompt of -p is empty."],
    [["run"], "deltafold: There is no prompt: give -p TEXT, or write one to standard input."],
    [["serve", "--port", "99999"], "It must be a whole number from 0 to 65535."],
    [["show"], "deltafold: missing required argument 'model'"],
    [["run", "nanoo", "-p", "x"], "deltafold: There is no model nanoo: it is neither nano, which"],
    [["convert", "nanoo", "b"], "deltafold: There is no model nanoo"],
    [["plan", "nano", "--shape", "2b"], "--shape stands for a model: give one of the two."],
    [["plan", "--bits", "3"], "deltafold: --bits goes with --shape."],
    [["bench", "decode", "nano", "--shape", "2b"], "--shape stands for a model"],
    [["bench", "decode", "--compare-scan"], "deltafold: --compare-scan goes with --shape."],
    [["gate", "chunks", "--model", "/nowhere"], "deltafold: /nowhere: does not exist"],
    [
      ["convert", "a", "b", "--bits", "7"],
      "option '--bits <n>' argument '7' is invalid. It must be 2, 3, 4, 5, 6 or 8.",
    ],
    [
      ["convert", "a", "b", "--group-size", "48"],
      "option '--group-size <n>' argument '48' is invalid. It must be 32, 64 or 128.",
    ],
  ])("refuses %j with one line", async (args, message) => {
    const { code, stdout, stderr } = await runLine(args);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toContain(message);
    expect(stderr).not.toContain("    at ");
  });
});
