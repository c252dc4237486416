/** Clients that vanish or stop reading, over real sockets. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { expect, test, vi } from "vitest";
import { nextTask } from "../../clock.ts";
import { Alarms } from "../../serve/alarms.cases.ts";
import { type TestServer, testServer } from "../../serve/engine.cases.ts";
import { post, replyTo, textPath } from "../../serve/http.cases.ts";
import { Captured } from "../io.cases.ts";
import { Listener } from "./listener.ts";

const until = async (condition: () => boolean) => {
  while (!condition()) await nextTask();
};

/** Passes end one by one as a test says, or by themselves. */
class Steps {
  /** Those that have begun. */
  passes = 0;
  #free = false;
  readonly #ends: (() => void)[] = [];

  readonly computed = async (): Promise<void> => {
    this.passes++;
    await nextTask();
    if (!this.#free) await new Promise<void>((resolve) => this.#ends.push(resolve));
  };

  /** Ends the pass that is being computed. */
  async step(): Promise<void> {
    await until(() => this.#ends.length > 0);
    this.#ends.shift()!();
  }

  run(): void {
    this.#free = true;
    for (const end of this.#ends.splice(0)) end();
  }

  stop(): void {
    this.#free = false;
  }
}

const unreadMs = 60_000;

interface Serving {
  readonly server: TestServer;
  readonly steps: Steps;
  readonly alarms: Alarms;
  readonly listener: Listener;
  /** Of the requests that came over the socket. */
  readonly signals: AbortSignal[];
}

async function serving(): Promise<Serving & AsyncDisposable> {
  const steps = new Steps();
  const alarms = new Alarms();
  const server = testServer({
    slots: 1,
    computed: steps.computed,
    // It is in every event, of which 400 are more than the buffers of a connection hold.
    parts: { model: "m".repeat(2 ** 18) },
    app: { unreadMs, pingMs: 0, setAlarm: alarms.set },
  });
  const signals: AbortSignal[] = [];
  const listener = await Listener.open("127.0.0.1", 0, (request, connection) => {
    signals.push(request.signal);
    return server.app.fetch(request, connection);
  });
  const dispose = async () => {
    steps.run();
    await server.engine[Symbol.asyncDispose]();
    await listener[Symbol.asyncDispose]();
    expect(server.backend.openSlots.size).toBe(0);
    expect(server.reported).toEqual([]);
  };
  return { server, steps, alarms, listener, signals, [Symbol.asyncDispose]: dispose };
}

/** Sends a request, and reads nothing yet. */
function send({ listener }: Serving, body: object): Socket {
  const { hostname, port } = new URL(listener.url);
  const socket = connect(Number(port), hostname).pause();
  // Which error it is depends on what was on its way.
  socket.on("error", () => {});
  const text = JSON.stringify({ max_tokens: 3000, ignore_eos: true, ...body });
  const head = `POST ${textPath} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json`;
  socket.write(`${head}\r\nContent-Length: ${text.length}\r\n\r\n${text}`);
  return socket;
}

/** Waits until the server knows that its client is gone. */
async function noticed({ signals }: Serving): Promise<void> {
  const [signal] = signals;
  if (!signal!.aborted) await once(signal!, "abort");
}

const short = { prompt: "Once", max_tokens: 4, ignore_eos: true };

test.each([true, false])("a client that vanishes from the queue (stream %s)", async (stream) => {
  await using at = await serving();
  const { server, steps } = at;
  const first = post(server.app, textPath, short);
  await steps.step();
  const client = send(at, { prompt: "x", stream });
  await until(() => server.engine.counts.waiting === 1);
  client.destroy();
  await noticed(at);
  await steps.step();
  await until(() => server.engine.counts.waiting === 0);
  expect(server.engine.counts.running).toBe(1);
  steps.run();
  expect((await first).status).toBe(200);
});

test.each([true, false])("a client that vanishes from its prompt (stream %s)", async (stream) => {
  await using at = await serving();
  const { server, steps } = at;
  const client = send(at, { prompt: Array(1000).fill(5), max_tokens: 9, stream });
  await steps.step();
  await steps.step();
  client.destroy();
  await noticed(at);
  expect(server.backend.openSlots.size).toBe(1);
  // No pass but the one at hand: the next would wait for ever.
  await steps.step();
  await until(() => server.backend.openSlots.size === 0);
  expect(server.engine.counts).toEqual({ waiting: 0, running: 0 });
});

test.each([true, false])("a client that vanishes from its reply (stream %s)", async (stream) => {
  await using at = await serving();
  const { server, steps } = at;
  const client = send(at, { prompt: "x", stream });
  for (let tokens = 0; tokens < 5; tokens++) await steps.step();
  if (stream) {
    client.resume();
    await once(client, "data");
  }
  client.destroy();
  await noticed(at);
  await steps.step();
  await until(() => server.backend.openSlots.size === 0);
  expect(server.engine.counts).toEqual({ waiting: 0, running: 0 });
});

/** A client that reads nothing, whose events fill every buffer while its reply goes on. */
async function stalled(at: Serving): Promise<Socket> {
  const { alarms, steps } = at;
  steps.run();
  const client = send(at, { prompt: "x", stream: true });
  await until(() => alarms.count > 0 && steps.passes > 400);
  steps.stop();
  return client;
}

test("a client that vanishes while it doesn't read", async () => {
  await using at = await serving();
  const { server, steps, alarms } = at;
  const client = await stalled(at);
  client.destroy();
  await noticed(at);
  await steps.step();
  await until(() => server.backend.openSlots.size === 0);
  await until(() => alarms.count === 0);
});

test("a client that stops reading is dropped, and the next is served", async () => {
  const logged = vi.spyOn(console, "error");
  const at = await serving();
  const { server, steps, alarms } = at;
  const client = await stalled(at);
  expect(server.engine.counts.running).toBe(1);
  alarms.pass(unreadMs);
  await noticed(at);
  await steps.step();
  await until(() => server.backend.openSlots.size === 0);
  steps.run();
  expect((await replyTo(server.app, textPath, short)).usage!.completion_tokens).toBe(4);
  // What was written is there still, but no end of the reply.
  const text = client.pipe(new Captured(false));
  client.resume();
  await once(client, "close");
  expect(text.text).toMatch(/^HTTP\/1\.1 200 /);
  expect(text.text).not.toContain("[DONE]");
  expect(alarms.count).toBe(0);
  await at[Symbol.asyncDispose]();
  expect(logged).not.toHaveBeenCalled();
  logged.mockRestore();
});
