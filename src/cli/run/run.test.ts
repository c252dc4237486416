import { cp, mkdtemp, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { modelFolder } from "../../node.ts";
import { runLine, testIo } from "../io.cases.ts";
import { runProgram } from "../program.ts";

let root = "";
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "deltafold-run-"));
});
afterAll(() => rm(root, { recursive: true }));

const question = "What is 37 + 5?";
const greedy = ["run", "--temperature", "0", "--no-drafts", "--threads", "1"];

async function copyOfNano(name: string): Promise<string> {
  const folder = join(root, name);
  await cp(modelFolder("nano"), folder, { recursive: true });
  return folder;
}

describe("run", () => {
  it("prints one JSON object, and the same reply as text", async () => {
    const json = await runLine([...greedy, "-p", question, "--json"]);
    expect(json).toMatchObject({ code: 0, stderr: "" });
    const object = JSON.parse(json.stdout);
    expect(object).toEqual({
      ids: expect.any(Array),
      text: expect.stringContaining("42"),
      reasoning: expect.stringContaining("carry"),
      finish_reason: "stop",
      prompt_tokens: 19,
      cached_tokens: 0,
      cache_miss_reason: "off",
      token_sha: expect.stringMatching(/^[0-9a-f]{12}$/),
      state_sha: expect.stringMatching(/^[0-9a-f]{64}$/),
      speculative: {
        rounds: expect.any(Number),
        drafted: expect.any(Number),
        accepted: expect.any(Number),
        tokens_per_round: expect.any(Number),
        by_drafter: expect.any(Object),
      },
      timings: {
        load_ms: expect.any(Number),
        prefill_ms: expect.any(Number),
        decode_ms: expect.any(Number),
        tokens_per_second: expect.any(Number),
      },
    });
    const text = await runLine(greedy, `${question}\n`);
    expect(text).toMatchObject({ code: 0, stdout: `${object.text}\n` });
    expect(text.stderr).toMatch(/^\d+ tokens, \d+ tok\/s\n$/);
  });

  it("continues raw ids, past the model's own end if asked", async () => {
    const line = ["--ids", "[40,1015,524]", "--max-tokens", "5", "--ignore-eos", "--json"];
    const { code, stdout } = await runLine([...greedy, ...line]);
    expect(code).toBe(0);
    const object = JSON.parse(stdout);
    expect(object).toMatchObject({ prompt_tokens: 3, finish_reason: "length", reasoning: "" });
    expect(object.ids).toHaveLength(5);
  });

  it("gives the same tokens on every 64-bit seed's second run", async () => {
    const line = [
      "run",
      "-p",
      question,
      "--seed",
      "18446744073709551615",
      "-q",
      "--max-tokens",
      "9",
    ];
    const [first, second] = [await runLine(line), await runLine(line)];
    expect(first).toMatchObject({ code: 0, stderr: "" });
    expect(second.stdout).toBe(first.stdout);
  });

  it("loads a folder of any name, and continues ids where there is no template", async () => {
    const folder = await copyOfNano("モデル é");
    await rm(join(folder, "chat_template.jinja"));
    const line = [...greedy, folder, "--max-tokens", "4", "--quiet"];
    const { code, stdout, stderr } = await runLine([...line, "--ids", "[40,1015,524]"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).not.toBe("");
    const refusal =
      `deltafold: ${folder} has no chat_template.jinja, so there is no chat with it. Continue ` +
      "token ids with --ids, or texts with `deltafold serve` and /v1/completions.\n";
    const refused = { code: 1, stdout: "", stderr: refusal };
    expect(await runLine([...line, "-p", "function add("])).toEqual(refused);
    expect(await runLine([...line, "-p", "x", "--system", "Be brief."])).toEqual(refused);
    expect(await runLine(line, "function add(")).toEqual(refused);
    const io = testIo(true);
    expect(await runProgram(line, io)).toBe(1);
    expect({ stdout: io.stdout.text, stderr: io.stderr.text }).toEqual({
      stdout: "",
      stderr: refusal,
    });
  });

  it("says of a folder without a checkpoint that it has none", async () => {
    const { code, stderr } = await runLine(["run", import.meta.dirname, "-p", "x"]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^deltafold: .*run: has no config\.json\n$/);
  });
});

describe("run refuses", () => {
  it.each([
    [["--ids", "[1,8185]"], "Token id 8185 is not in the vocabulary of 8185 tokens."],
    [["-p", "x", "--context", "5000"], "The context must be 1 to 4096 tokens"],
    [["-p", "x", "--context", "4"], "maximum context length is 4 tokens"],
    [["./missing", "-p", "x"], "missing: does not exist"],
  ])("%j", async (args, message) => {
    const { code, stdout, stderr } = await runLine(["run", ...args]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toMatch(/^deltafold: .*\n$/);
    expect(stderr).toContain(message);
  });

  it("standard input that is no text", async () => {
    const { code, stderr } = await runLine(["run"], new Uint8Array([0x68, 0xff]));
    expect(code).toBe(1);
    expect(stderr).toBe("deltafold: The prompt on standard input is not UTF-8 text.\n");
  });

  it.each<[string, (folder: string) => Promise<void>, RegExp]>([
    [
      "cut weights",
      (folder) => truncate(join(folder, "model.safetensors"), 9_000_000),
      /model\.safetensors: /,
    ],
    [
      "broken config",
      (folder) => writeFile(join(folder, "config.json"), "{"),
      /config\.json: is not valid JSON/,
    ],
    ["no tokenizer", (folder) => rm(join(folder, "tokenizer.json")), /has no tokenizer\.json/],
    [
      "a broken template",
      (folder) => writeFile(join(folder, "chat_template.jinja"), "{% if"),
      /chat_template\.jinja: /,
    ],
  ])("%s, naming the file", async (name, damage, message) => {
    const folder = await copyOfNano(name);
    await damage(folder);
    const { code, stdout, stderr } = await runLine(["run", folder, "-p", "x"]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toMatch(/^deltafold: .*\n$/);
    expect(stderr).toMatch(message);
  });
});
