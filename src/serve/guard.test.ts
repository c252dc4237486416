import type { Hono } from "hono";
import { expect, test } from "vitest";
import type { AppOptions } from "./app.ts";
import { testServer } from "./engine.cases.ts";
import { chatPath, hello, textPath } from "./http.cases.ts";
import { ApiKeys } from "./keys.ts";
import type { RequestEntry } from "./request-log.ts";

function guarded(options: Partial<AppOptions> = {}) {
  const keys = new ApiKeys([
    { label: "ann", key: "sk-ann" },
    { label: "ben", key: "sk-ben" },
  ]);
  const entries: RequestEntry[] = [];
  const onEnd = (entry: RequestEntry) => entries.push(entry);
  return { keys, entries, ...testServer({ app: { keys, onEnd, ...options } }) };
}

async function ask(app: Hono, path: string, headers: Record<string, string>, method = "GET") {
  const response = await app.request(path, { method, headers });
  return { status: response.status, headers: response.headers, body: await response.json() };
}

const missing =
  "This server needs an API key: send it as Authorization: Bearer KEY, or as x-api-key.";
const wrong = "The API key is not one of this server's.";

test.each<[what: string, headers: Record<string, string>, message: string]>([
  ["none", {}, missing],
  ["an empty one", { Authorization: "", "x-api-key": "" }, wrong],
  ["another scheme", { Authorization: "Basic c2stYW5u" }, missing],
  ["a bare one", { Authorization: "sk-ann" }, missing],
  ["two in one", { Authorization: "Bearer sk-ann sk-ben" }, missing],
  ["a wrong one", { Authorization: "Bearer sk-anna" }, wrong],
  ["a wrong one by the other header", { "x-api-key": "ann" }, wrong],
  ["a label", { "x-api-key": "ann" }, wrong],
])("refuses %s", async (_, headers, message) => {
  const { app } = guarded();
  const refused = await ask(app, "/v1/models", headers);
  expect(refused.status).toBe(401);
  expect(refused.headers.get("WWW-Authenticate")).toBe("Bearer");
  const error = { message, type: "invalid_request_error", param: null, code: "invalid_api_key" };
  expect(refused.body).toEqual({ error });
});

test.each<[what: string, headers: Record<string, string>]>([
  ["a bearer", { Authorization: "Bearer sk-ben" }],
  ["a bearer in other letters", { authorization: "bearer  sk-ben" }],
  ["x-api-key", { "X-API-Key": "sk-ben" }],
  ["x-api-key beside a wrong bearer", { Authorization: "Bearer no", "x-api-key": "sk-ben" }],
  ["a bearer beside a wrong x-api-key", { Authorization: "Bearer sk-ben", "x-api-key": "no" }],
])("takes %s, and names its key in the log", async (_, headers) => {
  const { app, entries } = guarded();
  expect((await ask(app, "/v1/models", headers)).status).toBe(200);
  expect(entries).toMatchObject([{ path: "/v1/models", status: 200, key: "ben" }]);
});

test("every endpoint is closed, and so is what isn't there", async () => {
  const { app, engine, entries } = guarded();
  const paths = [chatPath, textPath, "/v1/responses", "/v1/models/nano", "/metrics", "/v1/metrics"];
  for (const path of [...paths, "/v1/nothing", "/", "/health/other"]) {
    for (const method of ["GET", "POST", "DELETE"]) {
      expect((await ask(app, path, {}, method)).status).toBe(401);
    }
  }
  expect(engine.counts).toEqual({ waiting: 0, running: 0 });
  expect(entries.every(({ key, error_code }) => !key && error_code === "invalid_api_key")).toBe(
    true,
  );
});

test("a refused request is not read", async () => {
  const { app } = guarded();
  let read = false;
  const body = new ReadableStream(
    {
      pull: () => {
        read = true;
      },
    },
    { highWaterMark: 0 },
  );
  const headers = { "Content-Type": "application/json" };
  const init: RequestInit & { duplex: "half" } = { method: "POST", headers, body, duplex: "half" };
  expect((await app.request(chatPath, init)).status).toBe(401);
  expect(read).toBe(false);
});

test("Anthropic's clients are refused in their own way", async () => {
  const { app } = guarded();
  const { status, body, headers } = await ask(app, "/v1/messages", {}, "POST");
  expect(status).toBe(401);
  expect(headers.get("WWW-Authenticate")).toBe("Bearer");
  expect(body).toMatchObject({ type: "error", error: { type: "authentication_error" } });
});

test("a key lets requests through to the reply", async () => {
  const { app } = guarded();
  const headers = { "Content-Type": "application/json", Authorization: "Bearer sk-ann" };
  const body = JSON.stringify({ messages: hello, max_tokens: 1 });
  const response = await app.request(chatPath, { method: "POST", headers, body });
  expect(response.status).toBe(200);
});

test("health says its status to everybody, and the rest to those with a key", async () => {
  const { app } = guarded();
  const key = { "x-api-key": "sk-ann" };
  for (const path of ["/health", "/health/live", "/health/ready"]) {
    for (const headers of [{}, { "x-api-key": "no" }]) {
      const { status, body } = await ask(app, path, headers);
      expect([status, body]).toEqual([200, { status: "ok" }]);
    }
  }
  expect((await ask(app, "/health", key)).body).toMatchObject({ status: "ok", model: "nano" });
});

test("why a device was lost is for those with a key", async () => {
  const { app, backend } = guarded();
  backend.lose();
  await backend.lost;
  for (const path of ["/health", "/health/ready"]) {
    expect((await ask(app, path, {})).body).toEqual({ status: "lost" });
    const told = await ask(app, path, { "x-api-key": "sk-ann" });
    expect(told.body).toMatchObject({ status: "lost", reason: "the fake device was lost" });
    expect(told.status).toBe(503);
  }
});

test("metrics may be open to all", async () => {
  const { app } = guarded({ metricsOpen: true });
  expect((await app.request("/metrics")).status).toBe(200);
  expect((await app.request("/v1/metrics")).status).toBe(200);
  expect((await app.request("/v1/models")).status).toBe(401);
});

test("pages may ask for methods without a key, and for no more", async () => {
  const { app } = guarded({ corsOrigins: ["https://a.example"] });
  const headers = { Origin: "https://a.example" };
  const asked = { ...headers, "Access-Control-Request-Method": "POST" };
  expect((await app.request(chatPath, { method: "OPTIONS", headers: asked })).status).toBe(204);
  const refused = await app.request(chatPath, { method: "POST", headers });
  expect(refused.status).toBe(401);
  // Or the page would not see why.
  expect(refused.headers.get("Access-Control-Allow-Origin")).toBe("https://a.example");
});

test("keys that change count from the next request on", async () => {
  const { app, keys } = guarded();
  keys.replace([{ label: "cat", key: "sk-cat" }]);
  expect((await ask(app, "/v1/models", { "x-api-key": "sk-ann" })).status).toBe(401);
  expect((await ask(app, "/v1/models", { "x-api-key": "sk-cat" })).status).toBe(200);
});
