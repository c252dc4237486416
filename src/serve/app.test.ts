import { expect, test } from "vitest";
import type { Backend } from "../backend/backend.ts";
import { nextTask } from "../clock.ts";
import { BackendError } from "../errors.ts";
import { queueRequestsMax } from "../limits.ts";
import { createApp } from "./app.ts";
import { cacheBytes, idle, testServer } from "./engine.cases.ts";
import { chatPath, eventsOf, hello, post, replyTo, textPath } from "./http.cases.ts";

const endless = { prompt: "x", max_tokens: 4000, ignore_eos: true };

test("health tells how it stands with the device, in every phase", async () => {
  const openings: PromiseWithResolvers<Backend>[] = [];
  const openAgain = () => {
    openings.push(Promise.withResolvers<Backend>());
    return openings.at(-1)!.promise;
  };
  const { app, backend, reported } = testServer({ openAgain });
  const health = async () => {
    const reply = await app.request("/health");
    const { status, reason } = await reply.json();
    return [reply.status, status, reason];
  };
  const short = { prompt: "x", max_tokens: 2 };
  expect(await health()).toEqual([200, "ok", undefined]);
  backend.lose();
  await backend.lost;
  // The next request opens another, so there is no reason to send none.
  expect(await health()).toEqual([200, "lost", "the fake device was lost"]);
  let asked = post(app, textPath, short);
  while (openings.length < 1) await nextTask();
  expect(await health()).toEqual([503, "reopening", "the fake device was lost"]);
  openings[0]!.reject(new Error("no adapter"));
  const both = "the fake device was lost. It could not be opened again: no adapter";
  expect((await asked).status).toBe(503);
  expect(await (await asked).json()).toMatchObject({
    error: { code: "backend_lost", message: both },
  });
  expect(await health()).toEqual([503, "lost", both]);
  expect(reported).toHaveLength(1);
  asked = post(app, textPath, short);
  while (openings.length < 2) await nextTask();
  openings[1]!.resolve(testServer().backend);
  expect((await asked).status).toBe(200);
  expect(await health()).toEqual([200, "ok", undefined]);
});

test("health says so when the device is lost for good", async () => {
  const server = testServer();
  server.backend.lose();
  await server.backend.lost;
  const reply = await server.app.request("/health");
  expect(reply.status).toBe(503);
  expect(await reply.json()).toMatchObject({ status: "lost", reason: "the fake device was lost" });
});

test("models and health", async () => {
  await using engine = testServer().engine;
  const clock = { nowMs: () => 0, unixSeconds: () => 1234 };
  const app = createApp({ engine, clock });
  const card = {
    id: "nano",
    object: "model",
    created: 1234,
    owned_by: "deltafold",
    context_length: 4096,
    max_model_len: 4096,
    meta: { n_ctx: 4096, n_ctx_train: 4096, n_vocab: 8192, n_embd: 384, size: 0 },
  };
  const models = await app.request("/v1/models");
  expect(await models.json()).toEqual({ object: "list", data: [card] });
  expect(await (await app.request("/v1/models/nano")).json()).toEqual(card);
  expect((await app.request("/health", { method: "HEAD" })).status).toBe(200);
  const kv_bytes = 2 * 64 * 64 * 4;
  expect(await (await app.request("/health")).json()).toEqual({
    status: "ok",
    model: "nano",
    context_length: 4096,
    backend: { name: "fake", device: "none", arithmetic: "hashes" },
    memory: {
      weight_bytes: 0,
      state_bytes: 8,
      kv_bytes,
      workspace_bytes: 0,
      total_bytes: kv_bytes + 8,
    },
    requests: { waiting: 0, running: 0 },
    slots: 2,
    prompt_cache: { entries: 0, bytes: 0, bytes_max: cacheBytes },
  });
});

test("a failure before the first token is a status, streamed or not", async () => {
  const fault = () => {
    throw new BackendError("it broke");
  };
  const server = testServer({ fault });
  const error = { message: "it broke", type: "server_error", param: null, code: "backend_error" };
  for (const stream of [false, true]) {
    const response = await post(server.app, chatPath, { messages: hello, stream });
    expect(response.status).toBe(500);
    expect(await response.json()).toEqual({ error });
  }
  expect(server.reported).toEqual([new BackendError("it broke"), new BackendError("it broke")]);
  await idle(server);
});

test("a failure after it is an error event, then the end", async () => {
  const fault = (pass: number) => {
    if (pass === 4) throw new BackendError("it broke");
  };
  const server = testServer({ fault });
  const events = await eventsOf(server.app, textPath, { prompt: "x", max_tokens: 50 });
  const error = { message: "it broke", type: "server_error", param: null, code: "backend_error" };
  expect(events.at(-1)).toEqual({ error });
  expect(server.reported).toHaveLength(1);
  await idle(server);
  expect(
    (await replyTo(server.app, textPath, { prompt: "x", max_tokens: 3 })).error,
  ).toBeUndefined();
});

test("a full queue is refused, and room comes back", async () => {
  const server = testServer({ slots: 1 });
  const hangUp = new AbortController();
  const { signal } = hangUp;
  const send = () => post(server.app, textPath, endless, { signal });
  const first = send();
  while (server.engine.counts.running < 1) await new Promise(setImmediate);
  const waiting = Array.from({ length: queueRequestsMax }, send);
  while (server.engine.counts.waiting < queueRequestsMax) await new Promise(setImmediate);
  const refused = await post(server.app, textPath, endless);
  expect(refused.status).toBe(429);
  expect(refused.headers.get("Retry-After")).toBe("1");
  expect(await refused.json()).toMatchObject({
    error: { type: "rate_limit_error", code: "queue_full" },
  });
  hangUp.abort();
  await Promise.all([first, ...waiting]);
  await idle(server);
  await replyTo(server.app, textPath, { prompt: "x", max_tokens: 1 });
});

test("a reply that the server ends is an error, never a whole one", async () => {
  const server = testServer();
  const whole = post(server.app, textPath, endless);
  const events = eventsOf(server.app, textPath, endless);
  while (server.engine.counts.running < 2) await new Promise(setImmediate);
  await server.engine[Symbol.asyncDispose]();
  const error = { type: "server_error", code: "cancelled" };
  expect((await whole).status).toBe(503);
  expect(await (await whole).json()).toMatchObject({ error });
  expect((await events).at(-1)).toMatchObject({ error });
  expect(server.reported).toEqual([]);
});

test("what isn't ours is reported, not shown", async () => {
  const server = testServer();
  const secret = new TypeError("/home/someone/secret");
  server.engine.complete = () => {
    throw secret;
  };
  const response = await post(server.app, textPath, { prompt: "x" });
  expect(response.status).toBe(500);
  expect(await response.text()).not.toContain("secret");
  expect(server.reported).toEqual([secret]);
});

test.each([true, false])(
  "a request aborted while it runs frees its slot (stream %s)",
  async (stream) => {
    const server = testServer({ slots: 1 });
    const hangUp = new AbortController();
    const request = post(server.app, textPath, { ...endless, stream }, { signal: hangUp.signal });
    while (server.engine.counts.running < 1) await new Promise(setImmediate);
    hangUp.abort();
    await request;
    await idle(server);
  },
);

test("a request that is aborted already does no work", async () => {
  const server = testServer();
  await post(server.app, textPath, endless, { signal: AbortSignal.abort() }).catch(() => {});
  await idle(server);
});

test("a stream that is cancelled frees its slot, though nobody reads", async () => {
  const server = testServer({ slots: 1 });
  const { body } = await post(server.app, textPath, { ...endless, stream: true });
  expect(server.engine.counts.running).toBe(1);
  await body!.cancel();
  await idle(server);
  expect(server.reported).toEqual([]);
});
