import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Batches } from "../../batch/batches.ts";
import { freePort, queueProgram, TestQueueServer } from "../../batch/redis.cases.ts";
import { runLine, testIo } from "../io.cases.ts";
import { runProgram } from "../program.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "deltafold-cli-batch-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

const line = (id: string, prompt: string) =>
  JSON.stringify({
    ...{ custom_id: id, method: "POST", url: "/v1/completions" },
    body: { prompt, max_tokens: 3, temperature: 0 },
  });

function fileOf(name: string, lines: readonly string[]): string {
  const path = join(folder, name);
  writeFileSync(path, lines.join("\n"));
  return path;
}

test.each([
  [["submit", "--queue", "redis://a"], "missing required argument 'file'"],
  [["submit", "FILE"], "required option '--queue <url>' not specified"],
  [["submit", "FILE", "--queue", "here"], "The queue must be redis://"],
  [["submit", "FILE", "--queue", "redis://a", "--attempts", "0"], "a whole number from 1 to 1000"],
  [["submit", "absent.jsonl", "--queue", "redis://a"], "absent.jsonl does not exist."],
  [["bogus"], "unknown command 'bogus'"],
])("batch %j is refused with one line", async (args, message) => {
  const path = fileOf("fine.jsonl", [line("a", "x")]);
  const { code, stdout, stderr } = await runLine([
    "batch",
    ...args.map((arg) => (arg === "FILE" ? path : arg)),
  ]);
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toContain(message);
  expect(stderr.trimEnd().split("\n")).toHaveLength(1);
});

test("a queue that isn't there is told before anything is loaded", async () => {
  const url = `redis://:secret@127.0.0.1:${await freePort()}`;
  const path = fileOf("fine.jsonl", [line("a", "x")]);
  for (const args of [
    ["batch", "submit", path],
    ["batch", "status", path],
    ["batch", "results", path],
    ["batch", "cancel", path],
    ["worker", "./missing"],
  ]) {
    const { code, stderr } = await runLine([...args, "--queue", url]);
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /^deltafold: The queue redis:\S+ can't be used: nothing listens there\.\n$/,
    );
    expect(stderr).not.toContain("secret");
  }
});

test.skipIf(queueProgram === null)("so is one that refuses the password", async () => {
  await using server = await TestQueueServer.start("s3cret");
  const url = server.url.replace("s3cret", "guess");
  const path = fileOf("fine.jsonl", [line("a", "x")]);
  for (const args of [
    ["batch", "submit", path],
    ["worker", "./missing"],
  ]) {
    expect(await runLine([...args, "--queue", url])).toEqual({
      ...{ code: 1, stdout: "" },
      stderr:
        `deltafold: The queue ${url.replace(":guess@", "")} refuses this user and password: ` +
        "give redis://USER:PASSWORD@HOST.\n",
    });
  }
});

test.skipIf(queueProgram === null)("a file goes through a worker and comes back", async () => {
  await using server = await TestQueueServer.start();
  const queue = ["--queue", server.url];
  const path = fileOf("batch.jsonl", [
    line("a", "Once"),
    "broken",
    line("a", "x"),
    line("b", "Two"),
  ]);
  const unknown = await runLine(["batch", "status", path, ...queue]);
  expect(unknown.stderr).toContain("was not submitted to this queue, or its batch was removed.");
  const submitted = await runLine(["batch", "submit", path, ...queue]);
  expect(submitted.stdout).toMatch(/^batch_[0-9a-f]{32}: 2 requests, without 2 lines\n$/);
  expect(submitted.stderr).toContain(`line 2 of ${path} is left out: it is not valid JSON\n`);
  expect(submitted.stderr).toContain(
    `line 3 of ${path} is left out: its custom_id is that of line 1`,
  );
  const waiting = await runLine(["batch", "status", path, "--json", ...queue]);
  expect(JSON.parse(waiting.stdout)).toMatchObject({
    state: "open",
    waiting: 2,
    done: 0,
    broken: 2,
  });
  // As where the results found no room before.
  await using batches = await Batches.connect(server.url, () => {});
  await batches.queue(JSON.parse(waiting.stdout).id).pause();
  expect((await runLine(["batch", "status", path, ...queue])).stdout).toMatch(/^state +paused$/m);

  const io = testIo();
  const sizes = ["--threads", "1", "--context", "256", "--parallel", "1", "--no-drafts"];
  const worker = runProgram(["worker", ...sizes, "--metrics-port", "0", ...queue], io);
  const results = await runLine(["batch", "results", path, ...queue]);
  const output = join(folder, "batch.results.jsonl");
  expect(results).toMatchObject({ code: 0, stdout: `${output}: 2 of 2 results\n` });
  const lines = readFileSync(output, "utf8").trimEnd().split("\n");
  const replies = new Map(lines.map((text) => [JSON.parse(text).custom_id, JSON.parse(text)]));
  expect([...replies.keys()].sort()).toEqual(["a", "b"]);
  expect(replies.get("a").response.body.usage.completion_tokens).toBe(3);

  const url = /http:\S+/.exec(io.stdout.text)![0];
  expect(io.stdout.text).toContain(`weights ${replies.get("a").worker.weights}, device wasm; `);
  const metrics = await (await fetch(url)).text();
  expect(metrics).toContain('deltafold_batch_outcomes_total{outcome="done"} 2\n');
  expect(metrics).toContain("deltafold_generation_tokens_total 6\n");
  expect((await fetch(url.replace("metrics", "v1/models"))).status).toBe(404);
  io.signals.emit("SIGTERM");
  expect(await worker).toBe(0);

  const done = await runLine(["batch", "status", path, ...queue]);
  expect(done.stdout).toMatch(/state +done\ndone +2 of 2\n/);
  const terminal = testIo(true);
  expect(await runProgram(["batch", "results", path, "--remove", ...queue], terminal)).toBe(0);
  expect(terminal.stderr.text).toMatch(/results \[=+\] 100 %/);
  expect((await runLine(["batch", "cancel", path, ...queue])).code).toBe(1);
});
