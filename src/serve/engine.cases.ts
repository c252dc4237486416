import { fileURLToPath } from "node:url";
import type { Hono } from "hono";
import { expect } from "vitest";
import type { Backend, PassHandle, PassResult } from "../backend/backend.ts";
import { FakeBackend, type FakeOptions } from "../backend/fake/fake.ts";
import { readConfig } from "../checkpoint/config.ts";
import { openFolder } from "../checkpoint/source-node.ts";
import { nextTask } from "../clock.ts";
import { Engine, type EngineParts } from "../engine.ts";
import { pageRows } from "../limits.ts";
import { plainSampling } from "../sampling/params.ts";
import { ChatTemplate } from "../text/chat-template.ts";
import { Tokenizer } from "../text/tokenizer.ts";
import { type AppOptions, createApp } from "./app.ts";

const nano = await openFolder(fileURLToPath(new URL("../../models/nano", import.meta.url)));
const config = await readConfig(nano);
const template = ChatTemplate.fromSource(await nano.text("chat_template.jinja"), "nano");

export const tokenizer: Tokenizer = Tokenizer.fromJson(
  await nano.text("tokenizer.json"),
  await nano.text("tokenizer_config.json"),
  "nano/tokenizer.json",
);
const eosId = tokenizer.idOf("<|im_end|>")!;

/** Lets sockets and timers in between rounds, as backends that compute do. */
class YieldingFake extends FakeBackend {
  readonly #computed: () => Promise<void>;

  constructor(options: FakeOptions, computed: () => Promise<void>) {
    super(options);
    this.#computed = computed;
  }

  override async read(handle: PassHandle): Promise<PassResult> {
    await this.#computed();
    return await super.read(handle);
  }
}

export interface TestServer {
  readonly engine: Engine;
  readonly backend: FakeBackend;
  readonly app: Hono;
  /** What the app reported as its own failures. */
  readonly reported: unknown[];
}

export interface TestOptions extends Partial<FakeOptions> {
  readonly contextTokens?: number;
  readonly chat?: boolean;
  /** Opens another backend after the first was lost. */
  readonly openAgain?: () => Promise<Backend>;
  /** What each pass takes; a turn of the event loop unless given. */
  readonly computed?: () => Promise<void>;
  readonly parts?: Partial<EngineParts>;
  readonly app?: Partial<AppOptions>;
}

/** What the prompt caches of test servers may take. */
export const cacheBytes: number = 2 ** 28;

/** A server over the fake backend, with the tokenizer and the template of nano, and a prompt cache. */
export function testServer(options: TestOptions = {}): TestServer {
  const { contextTokens = 4096, slots = 2, chat = true, openAgain, ...others } = options;
  const { computed = nextTask, parts, app: appOptions, ...fake } = others;
  const pages = slots * Math.ceil(contextTokens / pageRows);
  const sizes = { shape: config.shape, slots, pages, rowsMax: 512, drawsMax: 64 };
  const backend = new YieldingFake({ ...sizes, ...fake }, computed);
  const engine = new Engine({
    backend,
    ...(openAgain && { openAgain }),
    tokenizer,
    template: chat ? template : null,
    model: "nano",
    eosIds: config.eosIds,
    contextTokens,
    thinking: null,
    sampling: { ...plainSampling, temperature: 0.7, topK: 20, topP: 0.95 },
    cache: { bytesMax: cacheBytes, spill: null },
    ...parts,
  });
  const reported: unknown[] = [];
  const report = (error: unknown) => reported.push(error);
  const app = createApp({ engine, report, ...appOptions });
  return { engine, backend, app, reported };
}

/** Logits that make one stream at a time say what `say` was given last, then eos for ever. */
export class Script {
  #ids: readonly number[] = [];
  #next = 0;

  /** @param reply a text, or token ids */
  say(reply: string | readonly number[]): void {
    this.#ids = typeof reply === "string" ? tokenizer.encode(reply) : reply;
    this.#next = 0;
  }

  readonly logits = (row: Float32Array): void => {
    row.fill(0);
    row[this.#ids[this.#next++] ?? eosId] = 1000;
  };
}

/** Ends servers, which must be left with nothing held and no failure of their own. */
export async function endServers(...servers: readonly TestServer[]): Promise<void> {
  for (const { engine, backend, reported } of servers) {
    await engine[Symbol.asyncDispose]();
    expect(backend.openSlots.size).toBe(0);
    expect(backend.heldStates.size).toBe(0);
    expect(reported).toEqual([]);
  }
}

/** Waits until nobody waits or runs, which must take a few rounds at most. */
export async function idle({ engine, backend }: TestServer): Promise<void> {
  for (let tries = 0; tries < 200; tries++) {
    const { waiting, running } = engine.counts;
    if (waiting + running === 0 && backend.openSlots.size === 0) return;
    await nextTask();
  }
  throw new Error(`still there: ${JSON.stringify(engine.counts)}`);
}
