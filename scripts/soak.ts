/**
 * `npm run soak -- --minutes 10`: a server in a process of its own, under a random mix of requests over
 * loopback: chats that go on, streams, hang-ups, bad requests. Its resident memory and its handles must
 * stay flat once it is warm, and it must never answer 5xx. Memory is what is left after a full
 * collection: between two of them V8's heap moves by 100 MB, which no slope of minutes sees through.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { type Random, randomInts } from "../src/cli/gate/timeline.ts";
import { Collector } from "./inspector.ts";

process.chdir(fileURLToPath(new URL("..", import.meta.url)));

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "10" },
    warm: { type: "string", default: "3" },
    seed: { type: "string", default: "1" },
    clients: { type: "string", default: "6" },
    backend: { type: "string", default: "wasm" },
  },
});
const minutes = Number(values.minutes);
/** Until then caches fill, code is compiled and heaps find their size. */
const warmMinutes = Number(values.warm);
const sampleMs = 10_000;
const slopeMbMax = 1;
/** Of texts that about fill the context. */
const longRepeats = 400;
const longTexts = 3;
/** Of texts that are refused, but whose tokens are remembered, and how many of a client's fill that. */
const rememberedRepeats = 1500;
const rememberedTexts = 28;
/** Sockets come and go; a leak of one a request would be thousands. */
const handlesMore = 16;

const statuses = new Map<number, number>();
let failures = 0;

interface Message {
  readonly role: string;
  readonly content: string;
}

/** A client that talks, until the time is over. */
class Client {
  readonly #url: string;
  readonly #random: Random;
  #messages: Message[] = [];

  constructor(url: string, seed: number) {
    this.#url = url;
    this.#random = randomInts(seed);
  }

  /**
   * First makes use of all memory that the server has taken, because the system gives it as it is first
   * used, and fills what it remembers of texts.
   */
  async talkUntil(endMs: number): Promise<void> {
    for (let text = 0; text < longTexts + rememberedTexts; text++) {
      const repeats = text < longTexts ? longRepeats : rememberedRepeats;
      const prompt = `Tale ${this.#random(1e9)}: ${"once upon a time ".repeat(repeats)}`;
      await this.#send("/v1/completions", { prompt, max_tokens: 4 });
    }
    while (performance.now() < endMs) await this.#turn();
  }

  async #turn(): Promise<void> {
    const random = this.#random;
    const kind = random(10);
    if (kind === 0) {
      await this.#send("/v1/chat/completions", { messages: "none" });
      return;
    }
    if (kind < 3) {
      const prompt = `Tale ${random(50)}: ${"once ".repeat(random(60))}`;
      await this.#send("/v1/completions", { prompt, ...this.#sampling() });
      return;
    }
    const words = ["add", "tell", "copy", "why", "write"].slice(0, 1 + random(5)).join(" ");
    if (this.#messages.length > 8 || random(6) === 0) this.#messages = [];
    const asked = [...this.#messages, { role: "user", content: `${words} ${random(1000)}` }];
    const reply = await this.#send("/v1/chat/completions", {
      messages: asked,
      ...this.#sampling(),
      ...(random(8) === 0 && { priority: "background" }),
    });
    if (typeof reply === "string")
      this.#messages = [...asked, { role: "assistant", content: reply }];
  }

  #sampling(): object {
    const random = this.#random;
    return {
      model: "nano",
      max_tokens: 1 + random(60),
      temperature: random(2),
      stream: random(2) === 0,
      seed: random(1000),
    };
  }

  /** @returns the reply's text, where it came whole */
  async #send(path: string, body: object): Promise<string | undefined> {
    const hangUp = new AbortController();
    const leaves = this.#random(6) === 0;
    if (leaves) setTimeout(() => hangUp.abort(), this.#random(80));
    try {
      const response = await fetch(this.#url + path, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(body),
        signal: hangUp.signal,
      });
      statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
      if (response.status === 429) await pause(100);
      const text = await response.text();
      const isStream = response.headers.get("Content-Type")?.startsWith("text/event-stream");
      if (response.status !== 200 || isStream) return undefined;
      return JSON.parse(text).choices[0].message?.content ?? undefined;
    } catch (error) {
      if (!hangUp.signal.aborted) {
        failures++;
        console.error(error);
      }
      return undefined;
    }
  }
}

async function started(child: ChildProcess): Promise<string> {
  for await (const line of createInterface({ input: child.stdout! })) return line.trim();
  throw new Error("the server ended before it said where it is");
}

interface Sample {
  readonly minute: number;
  /** Resident as it was found, and after a collection. */
  readonly mbBefore: number;
  readonly mb: number;
  readonly handles: number;
}

function residentMb(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+)/.exec(status)![1]) / 1024;
}

async function sample(pid: number, collector: Collector, startMs: number): Promise<Sample> {
  const mbBefore = residentMb(pid);
  await collector.collect();
  const handles = readdirSync(`/proc/${pid}/fd`).length;
  const minute = (performance.now() - startMs) / 60_000;
  return { minute, mbBefore, mb: residentMb(pid), handles };
}

/** The last of each minute's samples. */
function eachMinute(samples: readonly Sample[], of: (sample: Sample) => number): number[] {
  return samples
    .filter(({ minute }, at) => Math.floor(minute) !== Math.floor(samples[at + 1]?.minute ?? -1))
    .map((sample) => Math.round(of(sample)));
}

/** Least squares: MB a minute. */
function slope(samples: readonly Sample[]): number {
  const mean = (of: (each: Sample) => number) =>
    samples.reduce((sum, each) => sum + of(each), 0) / samples.length;
  const [minute, mb] = [mean((each) => each.minute), mean((each) => each.mb)];
  const over = samples.reduce((sum, each) => sum + (each.minute - minute) * (each.mb - mb), 0);
  return over / samples.reduce((sum, each) => sum + (each.minute - minute) ** 2, 0);
}

const flags = ["--backend", values.backend, "--context", "2048", "--prompt-cache-gib", "0.1"];
const server = spawn(
  process.execPath,
  [
    "--inspect=127.0.0.1:0",
    "bin/deltafold.js",
    "serve",
    "--port",
    "0",
    "--quiet",
    "--parallel",
    "4",
    "--queue",
    "8",
    ...flags,
  ],
  { stdio: ["ignore", "pipe", "pipe"] },
);
const [url, collector] = await Promise.all([started(server), Collector.connect(server.stderr)]);
const startMs = performance.now();
const endMs = startMs + minutes * 60_000;
const clients = Array.from(
  { length: Number(values.clients) },
  (_, index) => new Client(url, Number(values.seed) * 1000 + index),
);
const talking = Promise.all(clients.map((client) => client.talkUntil(endMs)));
const samples: Sample[] = [];
while (performance.now() < endMs) {
  await pause(sampleMs);
  samples.push(await sample(server.pid!, collector, startMs));
}
await talking;
await pause(1000);
const idle = await sample(server.pid!, collector, startMs);
collector.close();
server.kill("SIGTERM");
const warm = samples.filter(({ minute }) => minute > warmMinutes);
const report = {
  minutes,
  seed: Number(values.seed),
  statuses: Object.fromEntries([...statuses].sort(([a], [b]) => a - b)),
  failures,
  mb: eachMinute(samples, ({ mb }) => mb),
  mb_before_collecting: eachMinute(samples, ({ mbBefore }) => mbBefore),
  mb_per_minute: slope(warm),
  handles: { most: Math.max(...warm.map(({ handles }) => handles)), idle: idle.handles },
};
const held =
  report.mb_per_minute < slopeMbMax &&
  report.handles.idle <= samples[0]!.handles + handlesMore &&
  failures === 0 &&
  [...statuses.keys()].every((status) => status < 500);
console.log(JSON.stringify({ soak: held ? "holds" : "FAILS", ...report }, null, 2));
process.exitCode = held ? 0 : 1;
