/** Batches over a real queue server, with workers in this process that reply without a model. */

import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { nextTask } from "../clock.ts";
import { Batches, type BatchRecord } from "./batches.ts";
import { collect } from "./collect.ts";
import { QueueError } from "./connection.ts";
import { BatchFile } from "./file-node.ts";
import type { WorkerIdentity } from "./identity.ts";
import { queueProgram, TestQueueServer } from "./redis.cases.ts";
import type { BatchResult } from "./result.ts";
import { ResultsDiskError, ResultsFile } from "./results-node.ts";
import { BatchWorker, type WorkerParts } from "./worker.ts";

const identity: WorkerIdentity = {
  ...{ name: "test", model: "nano", build: "1.2.3", device: "wasm; SIMD; f32" },
  ...{ weights: "0123456789abcdef", probe: "fedcba9876543210" },
};

const never = new AbortController().signal;

const until = async (condition: () => boolean | Promise<boolean>) => {
  while (!(await condition())) await nextTask();
};

/** Says what it was asked. */
const echo = async (request: Request): Promise<Response> =>
  Response.json({ url: new URL(request.url).pathname, said: await request.json() });

describe.skipIf(queueProgram === null)("a batch", () => {
  let server: TestQueueServer;
  let folder = "";
  let files = 0;

  beforeAll(async () => {
    server = await TestQueueServer.start();
    folder = mkdtempSync(join(tmpdir(), "deltafold-batch-"));
  });
  afterAll(async () => {
    await server[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  });

  const line = (id: string, body: object = {}) =>
    JSON.stringify({ custom_id: id, method: "POST", url: "/v1/completions", body });

  /** Submits a batch of its own, whatever its lines. */
  async function submitted(
    ids: readonly string[],
    options: Partial<Pick<BatchRecord, "demands" | "attempts">> = {},
  ) {
    const path = join(folder, `batch-${files++}.jsonl`);
    const lines = ids.map((id) => line(id, { prompt: `${path} ${id}` }));
    writeFileSync(path, lines.join("\n"));
    const file = await BatchFile.open(path);
    const batches = await Batches.connect(server.url, () => {});
    onTestFinished(() => batches[Symbol.asyncDispose]());
    const asked = { demands: {}, attempts: 3, ...options };
    const record = await batches.submit(file, asked, () => {});
    onTestFinished(() => batches.remove(record));
    return { path, file, batches, record, output: `${path}.out` };
  }

  /** Starts a worker with a connection of its own. */
  async function work(parts: Partial<WorkerParts> = {}) {
    const warnings: string[] = [];
    const warn = (message: string) => warnings.push(message);
    const batches = await Batches.connect(server.url, warn);
    const worker = new BatchWorker({
      ...{ batches, fetch: echo, identity: () => identity, slots: 2, lockMs: 30_000, warn },
      ...parts,
    });
    const stop = new AbortController();
    const ran = worker.run(stop.signal, () => 0);
    let over = false;
    const end = async () => {
      if (over) return;
      over = true;
      stop.abort();
      await ran;
      await batches[Symbol.asyncDispose]();
    };
    onTestFinished(end);
    return { worker, warnings, end };
  }

  type Submitted = Awaited<ReturnType<typeof submitted>>;

  async function collected({ batches, record, output }: Submitted, wait = true) {
    await using file = await ResultsFile.open(output, record.id);
    await collect(batches, record, file, { wait, signal: never, onProgress: () => {} });
    return resultsIn(output);
  }

  const resultsIn = (output: string): BatchResult[] =>
    readFileSync(output, "utf8")
      .split("\n")
      .filter((text) => text !== "")
      .map((text) => JSON.parse(text));

  const idsOf = (results: readonly BatchResult[]) => results.map((each) => each.custom_id).sort();

  test("gives each request its result, once, with who made it", async () => {
    const batch = await submitted(["a", "b", "c"]);
    await work();
    await work({ identity: () => ({ ...identity, name: "other" }) });
    const results = await collected(batch);
    expect(idsOf(results)).toEqual(["a", "b", "c"]);
    const { id, response, error, worker } = results.find((each) => each.custom_id === "b")!;
    expect(id).toBe(`${batch.record.id}_2`);
    expect(response).toEqual({
      status_code: 200,
      request_id: id,
      body: { url: "/v1/completions", said: { prompt: `${batch.path} b` } },
    });
    expect(error).toBeNull();
    expect({ ...worker, name: "" }).toEqual({ ...identity, name: "" });
    expect(await collected(batch)).toEqual(results);
  });

  test("goes on where a submission was cut short", async () => {
    const { batches, file, record } = await submitted(["a", "b", "c"]);
    await batches.queue(record.id).remove("line-2");
    expect((await batches.counts(record.id)).waiting).toBe(2);
    expect(await batches.submit(file, { demands: {}, attempts: 3 }, () => {})).toEqual(record);
    expect((await batches.counts(record.id)).waiting).toBe(3);
    const other = batches.submit(file, { demands: {}, attempts: 4 }, () => {});
    await expect(other).rejects.toThrow("was submitted with other options already");
  });

  test("goes on where its results were cut short", async () => {
    const batch = await submitted(["a", "b", "c", "d"]);
    await work();
    const whole = await collected(batch);
    const lines = readFileSync(batch.output, "utf8").split("\n");
    writeFileSync(batch.output, `${lines.slice(0, 2).join("\n")}\n${lines[2]!.slice(0, 20)}`);
    const again = await collected(batch);
    expect(idsOf(again)).toEqual(idsOf(whole));
    expect(again.slice(0, 2)).toEqual(whole.slice(0, 2));
  });

  test("waits for workers that it asks for", async () => {
    const asked = await submitted(["a"], { demands: { weights: "01234", build: "1.2.3" } });
    const { end, warnings } = await work({
      identity: () => ({ ...identity, weights: "ffffffffffffffff" }),
    });
    await until(() => warnings.length > 0);
    expect(warnings).toEqual([
      `${asked.record.id} is left to others: it asks for weights 01234, and this worker has ffffffffffffffff`,
    ]);
    const other = await submitted(["x"]);
    expect(idsOf(await collected(other))).toEqual(["x"]);
    expect(await collected(asked, false)).toEqual([]);
    await end();
    await work();
    expect((await collected(asked)).map(({ worker }) => worker.weights)).toEqual([
      identity.weights,
    ]);
  });

  test("tries again what fails by no fault of its own, and no more often than it may", async () => {
    const tries = new Map<string, number>();
    const fetch = async (request: Request) => {
      const { prompt } = (await request.json()) as { prompt: string };
      const name = prompt.split(" ").at(-1)!;
      tries.set(name, (tries.get(name) ?? 0) + 1);
      if (name === "refused") return Response.json({ error: name }, { status: 400 });
      const fails = name === "broken" || tries.get(name) === 1;
      return Response.json({ name }, { status: fails ? 503 : 200 });
    };
    const batch = await submitted(["fine", "refused", "broken"], { attempts: 2 });
    const { worker } = await work({ fetch });
    const results = await collected(batch);
    const statuses = results.map((each) => [each.custom_id, each.response?.status_code]);
    expect(Object.fromEntries(statuses)).toEqual({ fine: 200, refused: 400, broken: 503 });
    expect(Object.fromEntries(tries)).toEqual({ fine: 2, refused: 1, broken: 2 });
    const metrics = await worker.metrics();
    expect(metrics).toContain('deltafold_batch_outcomes_total{outcome="retried"} 2\n');
    expect(metrics).toContain('deltafold_batch_requests{state="done"} 3\n');
  });

  // Locks are short here: on a busy machine a live worker may lose one, too.
  const manyTries = { attempts: 100 };

  /** A worker that renews no lock, as one that was killed. */
  const dead = () => {
    const { promise } = Promise.withResolvers<Response>();
    return work({ fetch: () => promise, setAlarm: () => () => {}, slots: 1, lockMs: 300 });
  };

  test("hands on what a dead worker had", async () => {
    const batch = await submitted(["a"], manyTries);
    await dead();
    await until(async () => (await batch.batches.counts(batch.record.id)).running === 1);
    await work({ lockMs: 300 });
    expect(idsOf(await collected(batch))).toEqual(["a"]);
  });

  test("makes an error of what too many workers die over", async () => {
    const batch = await submitted(["poison"], { attempts: 2 });
    await dead();
    await until(async () => (await batch.batches.counts(batch.record.id)).running === 1);
    await dead();
    await until(async () => {
      const job = await batch.batches.queue(batch.record.id).getJob("line-1");
      return job!.attemptsStarted === 2;
    });
    await work({ lockMs: 300 });
    const [result] = await collected(batch);
    expect(result).toMatchObject({
      custom_id: "poison",
      response: null,
      error: {
        code: "worker_lost",
        message: "2 workers in turn were lost while they had this request.",
      },
    });
  });

  test("takes no result of a worker that has lost the request", async () => {
    const batch = await submitted(["a"], manyTries);
    const { promise, resolve } = Promise.withResolvers<Response>();
    const late = await work({ fetch: () => promise, setAlarm: () => () => {}, lockMs: 300 });
    await until(async () => (await batch.batches.counts(batch.record.id)).running === 1);
    await work({ lockMs: 300 });
    const [result] = await collected(batch);
    resolve(Response.json("late"));
    await until(async () => (await late.worker.metrics()).includes("handed_on"));
    expect(await collected(batch)).toEqual([result]);
    expect(result!.response!.body).not.toBe("late");
  });

  test("gets back what a worker that stops hasn't done", async () => {
    const batch = await submitted(["a"]);
    const { promise } = Promise.withResolvers<Response>();
    const { end } = await work({ fetch: () => promise });
    await until(async () => (await batch.batches.counts(batch.record.id)).running === 1);
    await end();
    expect(await batch.batches.counts(batch.record.id)).toMatchObject({ waiting: 1, running: 0 });
    await work();
    expect(idsOf(await collected(batch))).toEqual(["a"]);
  });

  test("keeps what is done when it is cancelled, and begins anew when submitted again", async () => {
    const batch = await submitted(["a", "b", "c"]);
    const { promise } = Promise.withResolvers<Response>();
    let served = 0;
    const { end } = await work({
      ...{ slots: 1 },
      fetch: (request) => (served++ === 0 ? echo(request) : promise),
    });
    await until(async () => (await batch.batches.counts(batch.record.id)).done === 1);
    await batch.batches.cancel(batch.record);
    await end();
    expect(await collected(batch)).toHaveLength(1);
    await work();
    expect((await batch.batches.find(batch.record.id))!.cancelled).toBe(true);
    await batch.batches.submit(batch.file, { demands: {}, attempts: 3 }, () => {});
    expect(idsOf(await collected(batch))).toEqual(["a", "b", "c"]);
  });

  test("pauses while there is no room for its results, and loses none", async () => {
    const batch = await submitted(["a", "b", "c", "d"]);
    const { batches, record, output } = batch;
    const { promise } = Promise.withResolvers<Response>();
    let served = 0;
    const first = await work({
      slots: 1,
      fetch: (request) => (served++ < 2 ? echo(request) : promise),
    });
    await until(async () => (await batches.counts(record.id)).done === 2);
    await first.end();
    const noRoom = Object.assign(new Error("no room"), { code: "ENOSPC" });
    let writes = 0;
    const full = {
      // Half a line fits.
      write: async (
        handle: import("node:fs/promises").FileHandle,
        bytes: Uint8Array,
        at: number,
      ) => {
        if (writes++ > 0) throw noRoom;
        return (await handle.write(bytes.subarray(0, 100), 0, 100, at)).bytesWritten;
      },
    };
    {
      await using file = await ResultsFile.open(output, record.id, full);
      const asked = { wait: true, signal: never, onProgress: () => {} };
      await expect(collect(batches, record, file, asked)).rejects.toThrow(ResultsDiskError);
    }
    expect(readFileSync(output, "utf8")).toBe("");
    await work();
    expect(idsOf(await collected(await submitted(["later"])))).toEqual(["later"]);
    expect(await batches.counts(record.id)).toMatchObject({ waiting: 2, running: 0, done: 2 });
    expect(idsOf(await collected(batch))).toEqual(["a", "b", "c", "d"]);
  });

  test("writes to no file of something else", async () => {
    const batch = await submitted(["a"]);
    writeFileSync(batch.output, "my notes\n");
    await expect(collected(batch)).rejects.toThrow("Line 1 of");
    const other = await submitted(["a"]);
    await work();
    await collected(other);
    const opened = ResultsFile.open(other.output, batch.record.id);
    await expect(opened).rejects.toThrow("is no result of this batch");
    // It could be read for ever.
    const endless = ResultsFile.open("/dev/zero", batch.record.id);
    await expect(endless).rejects.toThrow(
      "/dev/zero can't be written: it is no file to go on with.",
    );
  });

  test("goes on over a restart of its server", async () => {
    const ids = Array.from({ length: 60 }, (_, index) => `r${index}`);
    const batch = await submitted(ids, manyTries);
    // A request that was given away as the server died is nobody's until its lock ends.
    await work({ lockMs: 300 });
    await until(async () => (await batch.batches.counts(batch.record.id)).done > 5);
    await server.stop("SIGKILL");
    await server.start();
    expect(new Set(idsOf(await collected(batch))).size).toBe(60);
    expect(resultsIn(batch.output)).toHaveLength(60);
  });

  test("notices that its file has changed meanwhile", async () => {
    const { file, batches, record } = await submitted(["a"]);
    await batches.remove(record);
    appendFileSync(file.path, "\n");
    const again = batches.submit(file, { demands: {}, attempts: 3 }, () => {});
    await expect(again).rejects.toThrow("has changed while it was read");
  });

  test("a wrong password is told, and not shown", async () => {
    await using guarded = await TestQueueServer.start("s3cret");
    const { port } = new URL(guarded.url);
    await (await Batches.connect(guarded.url, () => {}))[Symbol.asyncDispose]();
    for (const user of ["", ":guess@"]) {
      const url = `redis://${user}127.0.0.1:${port}`;
      const error = await Batches.connect(url, () => {}).catch((caught) => caught);
      expect(error).toBeInstanceOf(QueueError);
      expect(error.code).toBe("queue_unauthorized");
      expect(error.message).not.toContain("guess");
    }
    const far = await Batches.connect(`${server.url}/9999`, () => {}).catch((caught) => caught);
    expect(far).toMatchObject({ code: "queue_unreachable", message: /DB index/ });
  });
});
