import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { tinyFiles, tinyTensors } from "../../weights/tiny.cases.ts";
import { runLine, testIo } from "../io.cases.ts";
import { runProgram } from "../program.ts";

let root = "";
let source = "";
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "deltafold-cli-convert-"));
  source = join(root, "source é");
  await mkdir(source);
  for (const [name, content] of tinyFiles(await tinyTensors())) {
    await writeFile(join(source, name), content);
  }
});
afterAll(() => rm(root, { recursive: true }));

describe("convert", () => {
  it("makes a folder and says what it is", async () => {
    const output = join(root, "made");
    const { code, stdout, stderr } = await runLine(["convert", source, output, "--bits", "8"]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: "" });
    expect(stderr).toMatch(/made: 0\.\d MiB, 8 bits in groups of 64, \d+\.\d s\n/);
    expect(stderr).toMatch(/^all 17 matrices are quantised\n$/m);
    const shown = await runLine(["show", output, "--json"]);
    expect(JSON.parse(shown.stdout)).toMatchObject({
      layout: "mlx",
      formats: [{ format: "8-bit affine, groups of 64" }],
    });
  });

  it("says how many matrices keep their floats, and why", async () => {
    const { stderr } = await runLine(["convert", source, join(root, "128"), "--group-size", "128"]);
    const reason = "because groups of 128 don't divide their columns (64)";
    expect(stderr).toContain(`3 of 17 matrices are quantised; 14 keep their floats, ${reason}\n`);
  });

  it("shows a bar on a terminal", async () => {
    const io = testIo(true);
    expect(await runProgram(["convert", source, join(root, "bar")], io)).toBe(0);
    expect(io.stderr.text).toContain("converting [");
  });

  it("refuses a folder that exists", async () => {
    const { code, stderr } = await runLine(["convert", source, source]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^deltafold: .*source é exists already.*\n$/);
  });

  it.each(["SIGINT", "SIGTERM"])("leaves nothing when %s stops it", async (signal) => {
    const io = testIo();
    const before = await readdir(root);
    const code = runProgram(["convert", source, join(root, "stopped")], io);
    io.signals.emit(signal);
    expect(await code).toBe(130);
    expect(io.stderr.text).toBe("deltafold: The conversion was stopped; nothing is left of it.\n");
    expect(await readdir(root)).toEqual(before);
    expect(io.signals.listenerCount(signal)).toBe(0);
  });
});
