/**
 * What serving costs beside the model: CPU time of the server's process for each streamed token, over that
 * of the rounds alone, whose backend is a fake. The clients are another process. Then many connections
 * at once.
 *
 *   node bench/serve/overhead.ts [--streams 8] [--tokens 1000] [--repeats 9]
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { cpus } from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { readConfig } from "../../src/checkpoint/config.ts";
import { openFolder } from "../../src/checkpoint/source-node.ts";
import { rounded, type Spread, spread } from "../../src/cli/bench/spread.ts";
import { Listener } from "../../src/cli/serve/listener.ts";
import { Engine } from "../../src/engine.ts";
import { pageRows } from "../../src/limits.ts";
import { embeddedModel, modelFolder } from "../../src/node.ts";
import { openTemplate, openTokenizer } from "../../src/open-text.ts";
import { RoundLoop } from "../../src/rounds/loop.ts";
import { plainSampling, resolveSampling, withSeed } from "../../src/sampling/params.ts";
import { createApp } from "../../src/serve/app.ts";
import type { ClientResult, ClientTask } from "./client.ts";
import { ScriptedBackend } from "./scripted-backend.ts";

const { values } = parseArgs({
  options: {
    streams: { type: "string", default: "8" },
    tokens: { type: "string", default: "1000" },
    repeats: { type: "string", default: "9" },
  },
});
const streams = Number(values.streams);
const tokens = Number(values.tokens);
const repeats = Number(values.repeats);
const contextTokens = 2 * tokens + 1024;
/** What it may be. */
const overheadUsMax = 50;
const crowd = { idle: 1000, busy: 64, tokens: 64 };

/** What all streams say: words, figures, and characters of several tokens. */
const said =
  "Nina met a fox near the old mill, and it rang a small bell 12 times. “Why?” she asked. " +
  "The fox said: 東京 is far, naïve friend, so I ring until 17:45. 🦊 They walked on.\n";

const folder = await openFolder(modelFolder(embeddedModel));
const { shape } = await readConfig(folder);
const tokenizer = await openTokenizer(folder, shape.vocabSize);
const template = await openTemplate(folder);
const text = tokenizer.encode(said);

const backend = () =>
  new ScriptedBackend(
    {
      shape,
      slots: streams,
      pages: streams * Math.ceil(contextTokens / pageRows),
      rowsMax: 512,
      drawsMax: 64,
    },
    text,
  );

await using engine = new Engine({
  backend: backend(),
  tokenizer,
  template,
  model: embeddedModel,
  eosIds: [],
  contextTokens,
  thinking: false,
  sampling: { ...plainSampling, temperature: 0 },
});
await using loop = new RoundLoop(backend(), { chunkRows: 256 });
const app = createApp({ engine });
await using listener = await Listener.open("127.0.0.1", 0, (request, connection) =>
  app.fetch(request, connection),
);

/** The rounds of so many streams, with nobody who reads their tokens. */
async function rounds(): Promise<void> {
  const promptIds = engine.promptOf({ messages });
  const sampling = withSeed(resolveSampling({ temperature: 0 }, plainSampling), promptIds);
  const eosIds = new Set<number>();
  const request = {
    promptIds,
    maxTokens: tokens,
    sampling,
    eosIds,
    fingerprint: false,
    draft: false,
  };
  const ended = Array.from({ length: streams }, () => {
    const { promise, resolve } = Promise.withResolvers<unknown>();
    loop.submit(request, { prefilled: () => {}, token: () => false, finished: resolve });
    return promise;
  });
  await Promise.all(ended);
}

const messages = [{ role: "user", content: "Tell me a story." }];

/** The same, read as a program does. */
async function inProcess(): Promise<void> {
  const read = async () => {
    let length = 0;
    for await (const event of engine.chat({ messages, maxTokens: tokens })) {
      if (event.type === "content") length += event.text.length;
    }
    if (length < tokens) throw new Error(`${length} characters of ${tokens} tokens`);
  };
  await Promise.all(Array.from({ length: streams }, read));
}

/** Clients that are told what to do. */
class Clients implements Disposable {
  readonly #process: ChildProcess = fork(fileURLToPath(new URL("client.ts", import.meta.url)));

  async perform(task: Omit<ClientTask, "url" | "body">): Promise<ClientResult> {
    const options = { stream: true, stream_options: { include_usage: true } };
    const body = { messages, max_tokens: task.tokens, ...options };
    this.#process.send({ url: listener.url, body, ...task } satisfies ClientTask);
    const [result] = await once(this.#process, "message");
    return result;
  }

  [Symbol.dispose](): void {
    this.#process.kill();
  }
}

using clients = new Clients();

/** The same, read over HTTP. */
async function served(): Promise<void> {
  const { whole } = await clients.perform({ tokens, busy: streams, idle: 0 });
  if (whole !== streams) throw new Error(`${whole} of ${streams} replies were whole`);
}

/** µs of all threads of this process, for each token. */
async function cost(work: () => Promise<void>): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / (streams * tokens);
}

const ways = { rounds, engine: inProcess, server: served } as const;
type Way = keyof typeof ways;
const names = Object.keys(ways) as Way[];
const costs: Record<Way, number[]> = { rounds: [], engine: [], server: [] };
for (let repeat = 0; repeat <= repeats; repeat++) {
  for (const name of repeat % 2 === 0 ? names : names.toReversed()) {
    const us = await cost(ways[name]);
    // The first compiles.
    if (repeat > 0) costs[name].push(us);
  }
}

/** Of the same repeat. */
const over = (way: Way, base: Way): Spread =>
  spread(costs[way].map((us, repeat) => us - costs[base][repeat]!));

const { whole, idle } = await clients.perform(crowd);
const overhead = over("server", "rounds");
const report = {
  bench: "serve overhead",
  cpu: cpus()[0]?.model ?? "unknown",
  cores: cpus().length,
  node: process.version,
  ...{ streams, tokens, repeats },
  us_per_token: {
    rounds: spread(costs.rounds),
    engine: spread(costs.engine),
    server: spread(costs.server),
  },
  overhead_us_per_token: overhead,
  of_it: { detokenising: over("engine", "rounds"), http_and_events: over("server", "engine") },
  characters_per_token: rounded(said.length / text.length),
  connections: { idle: `${idle} of ${crowd.idle}`, busy: `${whole} of ${crowd.busy}` },
};
const holds = overhead.median <= overheadUsMax && whole === crowd.busy;
console.log(JSON.stringify({ holds, ...report }, null, 2));
process.exitCode = holds ? 0 : 1;
