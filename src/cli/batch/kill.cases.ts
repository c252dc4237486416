/** A batch whose workers are killed and whose queue server is restarted, beside one that is left in peace. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Batches } from "../../batch/batches.ts";
import { BatchFile, type NumberedRequest } from "../../batch/file-node.ts";
import { TestQueueServer } from "../../batch/redis.cases.ts";
import type { BatchResult } from "../../batch/result.ts";
import { pause } from "../../clock.ts";
import { embeddedModel, openEngine } from "../../node.ts";
import { createApp } from "../../serve/app.ts";
import { ownProgram } from "../own-process.ts";

const workers = 4;
const lookMs = 50;
const slots = 2;
const contextTokens = 512;

export interface KillRun {
  readonly requests: number;
  readonly seed: number;
  /** Results between two kills, on average. */
  readonly resultsPerKill: number;
}

export interface KillReport {
  readonly results: number;
  readonly kills: number;
  readonly restarts: number;
  /** Workers that made a result. */
  readonly makers: number;
  readonly faults: readonly string[];
}

/** @param tell hears how far it is */
export async function killBatch(run: KillRun, tell: (line: string) => void): Promise<KillReport> {
  const folder = mkdtempSync(join(tmpdir(), "deltafold-batch-kill-"));
  try {
    const path = join(folder, "batch.jsonl");
    writeFileSync(path, fileText(run));
    await using server = await TestQueueServer.start();
    await using scene = new Scene(server, path, run);
    const { kills, restarts } = await scene.play(tell);
    tell("the same in peace");
    const results = scene.results();
    const faults = await faultsOf(path, results);
    const makers = new Set(results.map(({ worker }) => worker.name)).size;
    return { results: results.length, kills, restarts, makers, faults };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Numbers from 0 to below 1, by a seed. */
function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Tiny requests, of which some are refused. */
function fileText({ requests, seed }: KillRun): string {
  const random = randomOf(seed);
  const below = (count: number) => Math.floor(random() * count);
  const lines = Array.from({ length: requests }, (_, index) => {
    const text = `Say ${below(1_000_000)} and ${below(1_000_000)}`;
    const max_tokens = random() < 0.05 ? -1 : 1 + below(6);
    const drawn = { max_tokens, temperature: random() < 0.5 ? 0 : 1, seed: below(1000) };
    const chat = { messages: [{ role: "user", content: text }], ...drawn };
    const [url, body] =
      random() < 0.5
        ? ["/v1/chat/completions", chat]
        : ["/v1/completions", { prompt: text, ...drawn }];
    return JSON.stringify({ custom_id: `request-${index}`, method: "POST", url, body });
  });
  return `${lines.join("\n")}\n`;
}

class Scene implements AsyncDisposable {
  readonly #server: TestQueueServer;
  readonly #path: string;
  readonly #output: string;
  readonly #run: KillRun;
  readonly #random: () => number;
  readonly #workers: ChildProcess[] = [];
  #collector: ChildProcess | null = null;

  constructor(server: TestQueueServer, path: string, run: KillRun) {
    this.#server = server;
    this.#path = path;
    this.#output = `${path}.results`;
    this.#run = run;
    this.#random = randomOf(run.seed + 1);
  }

  async play(tell: (line: string) => void): Promise<{ kills: number; restarts: number }> {
    const { requests, resultsPerKill } = this.#run;
    await this.#submit();
    for (let index = 0; index < workers; index++) this.#workers.push(this.#startWorker());
    this.#collector = this.#startCollector();
    const signals = ["SIGKILL", "SIGTERM"] as const;
    let [kills, restarts, nextKill] = [0, 0, resultsPerKill];
    while (this.#collector.exitCode === null) {
      await pause(lookMs);
      const done = await this.#done();
      if (done >= nextKill && done < requests) {
        await this.#killWorker();
        kills++;
        nextKill = done + 2 * resultsPerKill * this.#random();
        tell(`${done} of ${requests} done, ${kills} kills`);
      }
      const due = restarts < signals.length && done >= ((restarts + 1) * requests) / 3;
      if (due) await this.#restart(signals[restarts++]!);
    }
    if (this.#collector.exitCode !== 0) throw new Error("batch results has failed");
    return { kills, restarts };
  }

  results(): BatchResult[] {
    const lines = readFileSync(this.#output, "utf8").trimEnd().split("\n");
    return lines.map((line) => JSON.parse(line));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#workers, this.#collector].map(kill));
  }

  async #submit(): Promise<void> {
    await using batches = await Batches.connect(this.#server.url, () => {});
    const attempts = 100;
    await batches.submit(await BatchFile.open(this.#path), { demands: {}, attempts }, () => {});
  }

  /** A connection of its own each time: the server comes and goes. */
  async #done(): Promise<number> {
    await using batches = await Batches.connect(this.#server.url, () => {});
    const { id } = await BatchFile.open(this.#path);
    return (await batches.counts(id)).done;
  }

  async #killWorker(): Promise<void> {
    const victim = Math.floor(this.#random() * workers);
    await kill(this.#workers[victim]!);
    this.#workers[victim] = this.#startWorker();
  }

  /** Whoever writes the results is killed too, in the middle of a line maybe. */
  async #restart(signal: "SIGKILL" | "SIGTERM"): Promise<void> {
    await kill(this.#collector);
    await this.#server.stop(signal);
    await this.#server.start();
    this.#collector = this.#startCollector();
  }

  #startWorker(): ChildProcess {
    const sizes = ["--parallel", `${slots}`, "--context", `${contextTokens}`];
    return this.#start([
      "worker",
      embeddedModel,
      "--threads",
      "1",
      ...sizes,
      "--lock-seconds",
      "2",
    ]);
  }

  #startCollector(): ChildProcess {
    return this.#start(["batch", "results", this.#path, "--output", this.#output]);
  }

  #start(args: readonly string[]): ChildProcess {
    const env = { ...process.env, DELTAFOLD_QUEUE_URL: this.#server.url };
    return spawn(process.execPath, [ownProgram, ...args], { stdio: "ignore", env });
  }
}

async function kill(child: ChildProcess | null): Promise<void> {
  if (!child || child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGKILL");
  await once(child, "exit");
}

/** What is wrong with a batch's results: each request must be there once, as without a queue. */
async function faultsOf(path: string, results: readonly BatchResult[]): Promise<string[]> {
  const faults: string[] = [];
  const found = Map.groupBy(results, (result) => result.custom_id);
  const makers = new Set(results.map(({ worker }) => JSON.stringify({ ...worker, name: "" })));
  if (makers.size > 1) faults.push(`workers differ: ${[...makers].join(" and ")}`);
  await using engine = await openEngine(embeddedModel, {
    threads: 1,
    parallel: slots,
    contextTokens,
  });
  const app = createApp({ engine });
  const requests: NumberedRequest[] = [];
  for await (const request of (await BatchFile.open(path)).read()) requests.push(request);
  const waiting = requests.values();
  const lane = async () => {
    for (const request of waiting) {
      const { customId } = request;
      const [result, ...more] = found.get(customId) ?? [];
      if (!result || more.length > 0)
        faults.push(`${customId} is there ${more.length + (result ? 1 : 0)} times`);
      else if (gist(result) !== (await inPeace(app, request))) faults.push(`${customId} differs`);
    }
  };
  await Promise.all(Array.from({ length: slots }, lane));
  if (results.length !== requests.length) faults.push(`${results.length} results`);
  return faults;
}

async function inPeace(
  app: ReturnType<typeof createApp>,
  { url, body }: NumberedRequest,
): Promise<string> {
  const headers = { "Content-Type": "application/json" };
  const reply = await app.request(url, { method: "POST", headers, body: JSON.stringify(body) });
  return gistOf(reply.status, await reply.json());
}

const gist = ({ response }: BatchResult): string => gistOf(response?.status_code, response?.body);

/** What may differ between two replies to one request: ids, times, and what was cached or drafted. */
const ownFields = ["id", "created", "timings", "speculative", "prompt_tokens_details"];

const gistOf = (status: number | undefined, body: unknown): string =>
  JSON.stringify([status, body], (name, value: unknown) =>
    ownFields.includes(name) ? undefined : value,
  );
