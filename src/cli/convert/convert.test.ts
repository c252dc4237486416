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
    expect(stderr).toMatch(/made: 0\.\d MiB in \d+\.\d s\n/);
    expect(stderr).toMatch(
      /^8 bits, groups of 64 {2,}17 {2,}[\d.]+( M)? {2,}8\.50 {2,}0\.\d MiB$/m,
    );
    const shown = await runLine(["show", output, "--json"]);
    expect(JSON.parse(shown.stdout)).toMatchObject({
      layout: "mlx",
      formats: [{ format: "8-bit affine, groups of 64" }],
    });
  });

  it("says which matrices stay as they are, and why", async () => {
    const line = ["convert", source, join(root, "128"), "--group-size", "128"];
    const { stderr } = await runLine([...line, "--bits-for", "layers.1.mlp.down_proj=keep"]);
    expect(stderr).toMatch(
      /^kept as stored, groups don't divide 64 columns: (language_model\.\S+, ){2}\S+ and 11 more$/m,
    );
    expect(stderr).toMatch(/^kept as stored, as asked: \S+layers\.1\.mlp\.down_proj$/m);
  });

  it("mixes widths as its flags say", async () => {
    const output = join(root, "mixed");
    const flags = ["--bits", "3", "--mixed", "6", "--bits-for", "layers.0.*=8"];
    const own = ["--bits-for", "*.up_proj=2"];
    expect(await runLine(["convert", source, output, ...flags, ...own])).toMatchObject({ code: 0 });
    const shown = await runLine(["show", output, "--json"]);
    const { formats } = JSON.parse(shown.stdout);
    const bits = formats.map(({ format }: { format: string }) => Number(format[0])).sort();
    expect(bits).toEqual([2, 3, 6, 8]);
  });

  it("says what it would write, and writes nothing", async () => {
    const before = await readdir(root);
    const line = ["convert", source, join(root, "dry"), "--bits", "8"];
    const { code, stdout, stderr } = await runLine([...line, "--dry-run"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(await readdir(root)).toEqual(before);
    const real = await runLine(line);
    expect(real.stderr.endsWith(stdout)).toBe(true);
    expect(stdout).toMatch(/^one file of weights, \d+ bytes$/m);
  });

  it.each([
    ["--bits-for", "lm_head"],
    ["--bits-for", "lm_head=7"],
    ["--mixed", "7"],
  ])("refuses %s %s", async (flag, value) => {
    const { code, stderr } = await runLine(["convert", source, join(root, "no"), flag, value]);
    expect(code).not.toBe(0);
    expect(stderr).toContain(flag);
  });

  it("refuses modules that aren't there", async () => {
    const line = ["convert", source, join(root, "no"), "--bits-for", "head=8"];
    const { code, stderr } = await runLine(line);
    expect(code).toBe(1);
    expect(stderr).toMatch(/no module is called head; they are called embed_tokens or lm_head/);
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
