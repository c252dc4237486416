import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type HubBench, modelFiles, shards, text } from "../../hub/hub.cases.ts";
import { noModelDrafter } from "../gate/gate-set.ts";
import { runLine, testIo } from "../io.cases.ts";
import { loadEngine } from "../load.ts";
import { runProgram } from "../program.ts";
import { answered, embeddedFiles, openCliHub } from "./cli-hub.cases.ts";

let bench: HubBench;
beforeEach(async () => {
  bench = await openCliHub();
});
afterEach(async () => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  await bench[Symbol.asyncDispose]();
});

const nano = "org/nano-MLX-4bit";
const folderOf = (commit: string) =>
  join(bench.cache, "models--org--nano-MLX-4bit", "snapshots", commit);

describe("pull", () => {
  it("says size, disk and memory, and then what came; its output is the folder", async () => {
    const commit = bench.server.put(nano, embeddedFiles("nano"));
    const { code, stdout, stderr } = await runLine(["pull", nano]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: `${folderOf(commit)}\n` });
    const lines = stderr.split("\n");
    expect(lines[0]).toBe(`model   ${nano}, main is ${commit}`);
    expect(lines[1]).toBe("size    12.4 MiB in 7 files");
    expect(lines[2]).toMatch(/^disk {4}\d.* free for .*deltafold-hub-/);
    expect(lines[3]).toMatch(
      /^memory {2}about \d.* with a context of 4096 tokens, of \d.* that are free: it fits$/,
    );
    expect(lines[4]).toMatch(/^org\/nano-MLX-4bit: 12\.\d MiB in \d+\.\d s$/);
    const again = await runLine(["pull", nano]);
    expect(again).toMatchObject({ code: 0, stdout, stderr: `${nano} is all here\n` });
    expect(bench.server.requests[0]?.authorization).toBe("Bearer hf_test");
  });

  it("pulls several, quietly", async () => {
    bench.server.put(nano, embeddedFiles("nano"));
    bench.server.put("zlab/nano-DFlash2", embeddedFiles("nano-dflash2"), "v1");
    const { code, stdout, stderr } = await runLine(["pull", "-q", nano, "zlab/nano-DFlash2@v1"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout.trimEnd().split("\n").length).toBe(2);
  });

  it("says where a model will not fit, and pulls it all the same", async () => {
    bench.server.put(nano, embeddedFiles("nano"));
    vi.spyOn(process, "availableMemory").mockReturnValue(1_000_000);
    const { code, stderr } = await runLine(["pull", nano]);
    expect(code).toBe(0);
    expect(stderr).toMatch(/^memory {2}it does not fit: The model needs .* MiB are free\./m);
  });

  it("says where a model can't be loaded as it is", async () => {
    const files = modelFiles().set("config.json", text({ model_type: "llama" }));
    bench.server.put("org/model", files);
    const { code, stderr } = await runLine(["pull", "org/model"]);
    expect(code).toBe(0);
    expect(stderr).toMatch(/^memory {2}it can't be loaded as it is: .*model_type.*"llama"/m);
  });

  it("refuses what the disk has no room for, before it comes", async () => {
    bench.server.put("org/model", modelFiles());
    const listed = await fetch(`${bench.server.url}/api/models/org/model/revision/main`);
    const listing = await listed.json();
    for (const { rfilename, lfs } of listing.siblings) {
      if (rfilename === shards[0]) lfs.size = 2 ** 52;
    }
    bench.server.fault("/revision/main", { text: JSON.stringify(listing) });
    const { code, stderr } = await runLine(["pull", "org/model"]);
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /4194304\.0 GiB are to come, and \d.* are free\. Make room, or set HF_HUB/,
    );
  });

  it("shows a bar with rate and time on a terminal", async () => {
    bench.server.put(nano, embeddedFiles("nano"));
    const io = testIo(true);
    expect(await runProgram(["pull", nano], io)).toBe(0);
    expect(io.stderr.text).toMatch(
      /org\/nano-MLX-4bit( \[[=-]+\])? \d+ %, \d+\.\d MiB of 12\.4 MiB/,
    );
  });

  it("says why it tries again", async () => {
    bench.server.put(nano, embeddedFiles("nano"));
    bench.server.fault("/model.safetensors", { status: 500 });
    const { code, stderr } = await runLine(["pull", nano]);
    expect(code).toBe(0);
    expect(stderr).toContain(
      `${nano}, trying again: the server that the hub named answered status 500\n`,
    );
  });

  it.each(["SIGINT", "SIGTERM"])(
    "keeps what came when %s stops it, and goes on with it",
    async (signal) => {
      bench.server.put(nano, embeddedFiles("nano"));
      bench.server.fault("/model.safetensors", { stallAt: 6_000_000 });
      const io = testIo();
      const code = runProgram(["pull", nano], io);
      bench.server.once("stalled", () => io.signals.emit(signal));
      expect(await code).toBe(130);
      expect(io.stderr.text).toContain(
        `deltafold: The pull of ${nano} was stopped; the next goes on with what has come.\n`,
      );
      const { stdout } = await runLine(["list"]);
      expect(stdout).toMatch(/^org\/nano-MLX-4bit@[0-9a-f]{40} +incomplete +\d/m);
      expect(stdout).toMatch(/^org\/nano-MLX-4bit +begun +\d/m);
      expect((await runLine(["pull", nano])).stderr).toMatch(
        /^size .* in 7 files, of which \d.* are here$/m,
      );
      expect(bench.server.requests.at(-1)?.range).toMatch(/^bytes=\d+-$/);
    },
  );

  it.each(["nano", "./org/name", "org/name@../x", "https://huggingface.co/org/name"])(
    "takes %s for no model of the hub",
    async (model) => {
      const { code, stderr } = await runLine(["pull", model]);
      expect(code).toBe(1);
      expect(stderr).toBe(
        `deltafold: ${JSON.stringify(model)} is no model of the hub: those are called ORG/NAME, or ORG/NAME@REVISION.\n`,
      );
      expect(bench.server.requests).toEqual([]);
    },
  );
});

describe("a model of the hub by name", () => {
  const run = (...flags: string[]) => ["run", nano, "-p", "Hello", "--max-tokens", "4", ...flags];

  it("is pulled with --yes, and found from then on", async () => {
    bench.server.put(nano, embeddedFiles("nano"));
    const refused = await runLine(run());
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain(`in ${bench.cache}. Pull it: deltafold pull ${nano}\n`);
    const pulled = await runLine(run("--yes", "--quiet", "--temperature", "0"));
    expect(pulled).toMatchObject({ code: 0, stderr: "" });
    const asked = bench.server.requests.length;
    vi.stubEnv("HF_HUB_OFFLINE", "1");
    const found = await runLine(run("--quiet", "--temperature", "0"));
    expect(found.stdout).toBe(pulled.stdout);
    expect(bench.server.requests.length).toBe(asked);
    const shown = await runLine(["show", nano, "--json"]);
    expect(JSON.parse(shown.stdout)).toMatchObject({ parameters: 21_889_736 });
  });

  it("is asked about at a terminal", async () => {
    bench.server.put(nano, embeddedFiles("nano"));
    const no = await answered(run(), (io) => io.stdin.write("what?\nno\n"));
    expect(no.code).toBe(1);
    expect(no.stderr).toMatch(/size .*12\.4 MiB in 7 files[\s\S]*Pull it\? \[Y\/n\] /);
    expect(no.stderr).toContain(`deltafold: ${nano} was not pulled.\n`);
    expect(bench.server.requests.every(({ at }) => at === "hub")).toBe(true);
    const gone = await answered(run(), (io) => io.stdin.end());
    expect(gone.code).toBe(130);
    const killed = await answered(run(), (io) => io.signals.emit("SIGTERM"));
    expect(killed.code).toBe(130);
    const yes = await answered(run(), (io) => io.stdin.write("\n"));
    expect(yes.code).toBe(0);
    expect(yes.stderr).toMatch(/4 tokens/);
  });

  it("is advised against where it won't fit", async () => {
    bench.server.put(nano, embeddedFiles("nano"));
    vi.spyOn(process, "availableMemory").mockReturnValue(1_000_000);
    const { code, stderr } = await answered(run(), (io) => io.stdin.write("\n"));
    expect(code).toBe(1);
    expect(stderr).toMatch(/it does not fit[\s\S]*Pull it\? \[y\/N\] /);
  });

  it("is refused unasked where it can't be loaded", async () => {
    const files = modelFiles().set("config.json", text({ model_type: "llama" }));
    bench.server.put("org/model", files);
    const { code, stderr } = await runLine(["run", "org/model", "-p", "Hello", "--yes"]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^deltafold: org\/model@[0-9a-f]{40}\/config\.json: .*"llama"/);
    expect(bench.server.requests.every(({ at }) => at === "hub")).toBe(true);
  });

  it("says what is missing offline", async () => {
    vi.stubEnv("HF_HUB_OFFLINE", "1");
    const { code, stderr } = await runLine(run("--yes"));
    expect(code).toBe(1);
    expect(stderr).toContain(
      `${nano} is neither a folder nor a whole model in ${bench.cache}, and HF_HUB_OFFLINE`,
    );
    expect((await runLine(["show", nano])).stderr).toContain("HF_HUB_OFFLINE is set.");
  });

  it("is served under it, with a drafter of the cache", async () => {
    bench.server.put(nano, embeddedFiles("nano"));
    bench.server.put("zlab/nano-DFlash2", embeddedFiles("nano-dflash2"));
    bench.server.put("zlab/other-DFlash2", embeddedFiles("nano"));
    for (const repo of ["zlab/nano-DFlash2", "zlab/other-DFlash2"])
      await bench.pull({ repo, revision: null });
    const io = testIo();
    const flags = { quiet: true, yes: true };
    await using engine = await loadEngine(io, nano, { contextTokens: 256, threads: 1 }, flags);
    expect(engine.info).toMatchObject({ model: nano, backend: { drafter: { kind: "dflash2" } } });
    const none = { contextTokens: 256, threads: 1, drafter: "none" };
    await using serial = await loadEngine(io, nano, none, flags);
    expect(serial.info.backend.drafter).toBeNull();
    const asked = { ...none, drafter: "zlab/nano-DFlash2" };
    await using drafted = await loadEngine(io, nano, asked, flags);
    expect(drafted.info.backend.drafter?.kind).toBe("dflash2");
    expect(io.stderr.text).toBe("");
  });

  it("is converted, measured and put to the gates, with a drafter of the cache", async () => {
    const missing = await runLine(["convert", nano, join(bench.cache, "out")]);
    expect(missing.stderr).toContain(`Pull it: deltafold pull ${nano}\n`);
    bench.server.put(nano, embeddedFiles("nano"));
    bench.server.put("zlab/nano-DFlash2", embeddedFiles("nano-dflash2"));
    for (const repo of [nano, "zlab/nano-DFlash2"]) await bench.pull({ repo, revision: null });
    const converted = await runLine(["convert", nano, "x", "--bits", "3", "--dry-run"]);
    expect(converted.stdout).toMatch(/^3 bits, groups of 64 +63 /m);
    const one = ["--threads", "1", "--json"];
    const measured = await runLine(["bench", "decode", nano, "--repeats", "1", ...one]);
    expect(JSON.parse(measured.stdout)).toMatchObject({ bench: "decode", model: nano });
    const drafts = await runLine(["gate", "drafted", "--model", nano, "--shard", "1/900", ...one]);
    expect(drafts.stdout).not.toContain(noModelDrafter);
    expect(JSON.parse(drafts.stdout).passed).toBeGreaterThan(0);
  });

  it("goes behind a folder of that name", async () => {
    const { stdout } = await runLine(["show", "models/nano", "--json"]);
    expect(JSON.parse(stdout).folder).toMatch(/models.nano$/);
    expect(await readdir(bench.cache)).toEqual([]);
  });
});
