import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { type HubBench, modelFiles, text } from "../../hub/hub.cases.ts";
import { runLine } from "../io.cases.ts";
import { answered, embeddedFiles, openCliHub } from "../pull/cli-hub.cases.ts";

let bench: HubBench;
beforeEach(async () => {
  bench = await openCliHub();
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await bench[Symbol.asyncDispose]();
});

it("lists models by the names that commands take", async () => {
  expect((await runLine(["list"])).stdout).toBe(`There is no model in ${bench.cache}.\n`);
  const tagged = bench.server.put("org/nano", embeddedFiles("nano"), "v1");
  await bench.pull({ repo: "org/nano", revision: "v1" });
  bench.server.put("org/nano", embeddedFiles("nano").set("chat_template.jinja", text("other")));
  await bench.pull({ repo: "org/nano", revision: null });
  bench.server.put("a/drafter", embeddedFiles("nano-dflash2"));
  await bench.pull({ repo: "a/drafter", revision: null });
  const llama = modelFiles().set("config.json", text({ model_type: "llama" }));
  const commit = bench.server.put("org/llama", llama);
  await bench.pull({ repo: "org/llama", revision: commit });
  const half = join(bench.cache, "models--org--half", "snapshots", "2".repeat(40));
  await mkdir(half, { recursive: true });
  await writeFile(join(half, "config.json"), embeddedFiles("nano").get("config.json")!);
  const { code, stdout, stderr } = await runLine(["list"]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const [first, ...lines] = stdout.trimEnd().split("\n");
  expect(first).toBe(`in ${bench.cache}:`);
  expect(lines.map((line) => line.trim().split(/ {2,}/))).toEqual([
    ["a/drafter", "drafter", "5.3 MiB"],
    [`org/half@${"2".repeat(40)}`, "incomplete", "0.0 MiB"],
    [`org/llama@${commit}`, "other", "0.3 MiB"],
    ...[
      ["org/nano", "model", "12.4 MiB"],
      ["org/nano@v1", "model", "12.4 MiB"],
    ].sort(() => (lines[3]!.startsWith("org/nano@v1") ? -1 : 1)),
  ]);
  const report = JSON.parse((await runLine(["list", "--json"])).stdout);
  expect(report.cache).toBe(bench.cache);
  expect(report.begun).toEqual([]);
  const v1 = report.models.find((each: { name: string }) => each.name === "org/nano@v1");
  expect(v1).toEqual({
    name: "org/nano@v1",
    repo: "org/nano",
    commit: tagged,
    revisions: ["v1"],
    kind: "model",
    bytes: 12_967_029,
    folder: join(bench.cache, "models--org--nano", "snapshots", tagged),
  });
});

it("removes what is confirmed", async () => {
  bench.server.put("org/model", modelFiles());
  await bench.pull({ repo: "org/model", revision: null });
  const unasked = await runLine(["rm", "org/model"]);
  expect(unasked.code).toBe(1);
  expect(unasked.stderr).toContain("--yes answers where there is no terminal");
  const no = await answered(["rm", "org/model"], (io) => io.stdin.write("\n"));
  expect(no).toMatchObject({ code: 0, stdout: "" });
  expect(no.stderr).toMatch(/Remove org\/model, 0\.3 MiB\? \[y\/N\] /);
  expect(no.stderr).not.toContain("is gone");
  const yes = await answered(["rm", "org/model@main"], (io) => io.stdin.write("y\n"));
  expect(yes.stderr).toMatch(/org\/model is gone: 0\.3 MiB\n$/);
  const gone = await runLine(["rm", "org/model", "--yes"]);
  expect(gone).toMatchObject({
    code: 1,
    stderr: `deltafold: org/model is not in ${bench.cache}.\n`,
  });
});
