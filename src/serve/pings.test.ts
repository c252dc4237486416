import { expect, test, vi } from "vitest";
import { nextTask } from "../clock.ts";
import { BackendError } from "../errors.ts";
import { Alarms } from "./alarms.cases.ts";
import { idle, Script, type TestOptions, testServer } from "./engine.cases.ts";
import { chatPath, eventsOf, hello, post, textPath } from "./http.cases.ts";

const pingMs = 15_000;
const ping = ": ping\n\n";

/** A server whose passes end when a test says, and whose time passes likewise. */
function steppedServer(options: TestOptions = {}) {
  const alarms = new Alarms();
  const script = new Script();
  script.say(" a b c d e");
  const passes: PromiseWithResolvers<void>[] = [];
  const computed = () => {
    const pass = Promise.withResolvers<void>();
    passes.push(pass);
    return pass.promise;
  };
  const { logits } = script;
  const server = testServer({ computed, logits, app: { setAlarm: alarms.set }, ...options });
  const begun = async () => {
    while (passes.length === 0) await nextTask();
    return passes.shift()!;
  };
  /** Ends the pass at hand, once it has begun. */
  const step = async () => (await begun()).resolve();
  const fail = async () => (await begun()).reject(new BackendError("it broke"));
  /** Lets time pass once an alarm is set for it. */
  const silence = async (ms: number) => {
    while (alarms.count === 0) await nextTask();
    alarms.pass(ms);
  };
  /** Ends passes as they begin, until `done`. */
  const stepUntil = async (done: Promise<unknown>) => {
    let over = false;
    void done.then(() => (over = true));
    while (!over) {
      passes.shift()?.resolve();
      await nextTask();
    }
  };
  return { alarms, step, stepUntil, fail, silence, ...server };
}

class Reader {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;

  constructor({ body }: Response) {
    this.#reader = body!.getReader();
  }

  async next(): Promise<string> {
    const { value } = await this.#reader.read();
    return new TextDecoder().decode(value);
  }

  async rest(): Promise<string> {
    let text = "";
    for (;;) {
      const { done, value } = await this.#reader.read();
      if (done) return text;
      text += new TextDecoder().decode(value);
    }
  }
}

const body = { prompt: "x", max_tokens: 2, ignore_eos: true, stream: true };

test("a first token that is late opens the stream by a ping, and another each time", async () => {
  const { app, alarms, step, silence } = steppedServer();
  const asked = post(app, textPath, body);
  await silence(pingMs - 1);
  await nextTask();
  expect(alarms.count).toBe(1);
  await silence(1);
  const response = await asked;
  expect(response.status).toBe(200);
  expect(response.headers.get("Content-Type")).toBe("text/event-stream; charset=utf-8");
  expect(response.headers.get("X-Accel-Buffering")).toBe("no");
  const reader = new Reader(response);
  expect(await reader.next()).toBe(ping);
  for (let time = 0; time < 3; time++) {
    const next = reader.next();
    await silence(pingMs);
    expect(await next).toBe(ping);
  }
  await step();
  await step();
  const rest = await reader.rest();
  expect(rest).toMatch(/^data: .*data: \[DONE\]\n\n$/s);
  expect(rest).not.toContain(ping);
  expect(alarms.count).toBe(0);
});

test("a silence between tokens is filled too", async () => {
  const { app, step, silence } = steppedServer();
  const asked = post(app, textPath, body);
  await step();
  const reader = new Reader(await asked);
  expect(await reader.next()).toMatch(/^data: /);
  const next = reader.next();
  await silence(pingMs - 1);
  await silence(1);
  expect(await next).toBe(ping);
  await step();
  expect(await reader.rest()).toMatch(/\[DONE\]\n\n$/);
});

test("tokens in time keep pings away", async () => {
  const { app, alarms, step, silence } = steppedServer();
  const asked = post(app, textPath, { ...body, max_tokens: 5 });
  await silence(pingMs - 1);
  await step();
  const reader = new Reader(await asked);
  expect(await reader.next()).toContain('"text":" a"');
  for (const text of [" b", " c", " d", " e"]) {
    const next = reader.next();
    await silence(pingMs - 1);
    await step();
    expect(await next).toContain(`"text":"${text}"`);
  }
  expect(await reader.rest()).not.toContain(ping);
  expect(alarms.count).toBe(0);
});

test("a failure after the first ping is an event", async () => {
  const { app, reported, fail, silence } = steppedServer();
  const asked = post(app, chatPath, { messages: hello, stream: true });
  await silence(pingMs);
  const response = await asked;
  expect(response.status).toBe(200);
  await fail();
  const text = await response.text();
  expect(text).toMatch(/^: ping\n\nevent: error\ndata: .*"it broke".*\n\ndata: \[DONE\]\n\n$/);
  expect(reported).toHaveLength(1);
});

test("a failure before it is a status", async () => {
  const { app, alarms, fail, silence } = steppedServer();
  const asked = post(app, chatPath, { messages: hello, stream: true });
  await silence(pingMs - 1);
  await fail();
  expect((await asked).status).toBe(500);
  expect(alarms.count).toBe(0);
});

test("a client that hangs up between pings leaves no stream and no alarm", async () => {
  const server = steppedServer();
  const asked = post(server.app, textPath, { ...body, max_tokens: 50 });
  await server.silence(pingMs);
  const reader = (await asked).body!.getReader();
  await reader.read();
  await server.step();
  await reader.read();
  await reader.cancel();
  expect(server.alarms.count).toBe(0);
  await server.step();
  await idle(server);
  expect(server.reported).toEqual([]);
});

test("a client that doesn't read its pings is dropped", async () => {
  const alarms = new Alarms();
  const app = { setAlarm: alarms.set, unreadMs: 20_000 };
  const never = new Promise<void>(() => {});
  const server = testServer({ computed: () => never, app });
  const asked = post(server.app, textPath, body);
  while (alarms.count === 0) await nextTask();
  alarms.pass(pingMs);
  const response = await asked;
  // The first ping waits to be read.
  while (alarms.count === 0) await nextTask();
  alarms.pass(20_000);
  await expect(response.text()).rejects.toThrow("The client read nothing for 20 s.");
  expect(alarms.count).toBe(0);
});

test("whole replies have none, and neither have streams that want none", async () => {
  const alarms = new Alarms();
  const server = testServer({ app: { setAlarm: alarms.set, pingMs: 0 } });
  const events = await eventsOf(server.app, textPath, body);
  expect(events.length).toBeGreaterThan(1);
  const pinged = testServer({ app: { setAlarm: alarms.set } });
  await (await post(pinged.app, textPath, { ...body, stream: false })).text();
  expect(alarms.count).toBe(0);
});

const several = { ...body, n: 2, max_tokens: 3 };
/** Rows of the fake's own, by which choices differ. */
const ownRows = () => {};

test("several choices wait for their prompt by pings, and the first for no other", async () => {
  const { app, engine, step, stepUntil, silence } = steppedServer({ logits: ownRows });
  const asked = post(app, textPath, several);
  await silence(pingMs);
  const response = await asked;
  expect(response.status).toBe(200);
  const reader = new Reader(response);
  expect(await reader.next()).toBe(ping);
  const next = reader.next();
  await silence(pingMs);
  expect(await next).toBe(ping);
  expect(engine.counts).toEqual({ waiting: 0, running: 1 });
  await step();
  expect(await reader.next()).toContain('"choices":[{"index":0,');
  const second = reader.next();
  await silence(pingMs);
  expect(await second).toBe(ping);
  const rest = reader.rest();
  await stepUntil(rest);
  const text = await rest;
  for (const index of [0, 1]) {
    expect(text).toMatch(new RegExp(`"index":${index},[^\\n]*"finish_reason":"length"`));
  }
  expect(text).toMatch(/data: \[DONE\]\n\n$/);
});

test("a choice that finds no place after the first ping is an event", async () => {
  const server = steppedServer({ logits: ownRows, parts: { queueMax: 0 } });
  const { app, engine, step, stepUntil, silence } = server;
  const other = engine.complete({ prompt: "y", maxTokens: 4000, ignoreEos: true });
  await step();
  await other.started;
  const asked = post(app, textPath, several);
  await silence(pingMs);
  const text = (await asked).text();
  await stepUntil(text);
  const refused = /^: ping\n\nevent: error\ndata: .*"code":"queue_full".*\n\ndata: \[DONE\]\n\n$/;
  expect(await text).toMatch(refused);
  other.cancel();
  await stepUntil(idle(server));
  expect(server.reported).toEqual([]);
});

test("a client that hangs up while the first choice waits has no other begun", async () => {
  const server = steppedServer({ logits: ownRows });
  const complete = vi.spyOn(server.engine, "complete");
  const asked = post(server.app, textPath, several);
  await server.silence(pingMs);
  const reader = (await asked).body!.getReader();
  await reader.read();
  await reader.cancel();
  await server.stepUntil(idle(server));
  expect(complete).toHaveBeenCalledTimes(1);
  expect(server.alarms.count).toBe(0);
});
