import type { Hono } from "hono";
import { expect, test } from "vitest";
import type { Backend } from "../backend/backend.ts";
import { nextTask } from "../clock.ts";
import { testServer } from "./engine.cases.ts";
import { post, textPath } from "./http.cases.ts";
import { standIn } from "./stand-in.ts";

type Ask = (path: string) => Response | Promise<Response>;

async function saidBy(ask: Ask, path: string) {
  const response = await ask(path);
  return [response.status, response.headers.get("Retry-After"), await response.json()];
}

const of = (app: Hono) => (path: string) => app.request(path);

test("a server that serves lives and is ready", async () => {
  const ask = of(testServer().app);
  expect(await saidBy(ask, "/health/live")).toEqual([200, null, { status: "ok" }]);
  expect(await saidBy(ask, "/health/ready")).toEqual([200, null, { status: "ok" }]);
});

test("a device that is lost for good is not ready, but the process lives", async () => {
  const { app, backend } = testServer();
  backend.lose();
  await backend.lost;
  const reason = "the fake device was lost";
  expect(await saidBy(of(app), "/health/ready")).toEqual([503, "1", { status: "lost", reason }]);
  expect(await saidBy(of(app), "/health/live")).toEqual([200, null, { status: "ok" }]);
});

test("one that can be opened again is ready until that is going on", async () => {
  const reopened = Promise.withResolvers<Backend>();
  let opening = false;
  const openAgain = () => {
    opening = true;
    return reopened.promise;
  };
  const { app, backend } = testServer({ openAgain });
  backend.lose();
  await backend.lost;
  const reason = "the fake device was lost";
  // The next request opens it: were none sent, it would stay lost.
  expect(await saidBy(of(app), "/health/ready")).toEqual([200, null, { status: "lost", reason }]);
  const asked = post(app, textPath, { prompt: "x", max_tokens: 1 });
  while (!opening) await nextTask();
  const now = { status: "reopening", reason };
  expect(await saidBy(of(app), "/health/ready")).toEqual([503, "1", now]);
  expect(await saidBy(of(app), "/health/live")).toEqual([200, null, { status: "ok" }]);
  reopened.resolve(testServer().backend);
  expect((await asked).status).toBe(200);
  expect(await saidBy(of(app), "/health/ready")).toEqual([200, null, { status: "ok" }]);
});

test.each(["loading", "stopping"] as const)(
  "who comes while it is %s is told so",
  async (status) => {
    const answer = standIn(status, "Not now.");
    const ask = (path: string) => answer(new Request(`http://localhost${path}`));
    expect(await saidBy(ask, "/health/live")).toEqual([200, null, { status: "ok" }]);
    expect(await saidBy(ask, "/health/ready")).toEqual([503, "1", { status }]);
    const error = { message: "Not now.", type: "server_error", param: null, code: status };
    for (const path of ["/health", "/v1/chat/completions", "/", "/metrics"]) {
      expect(await saidBy(ask, path)).toEqual([503, "1", { error }]);
    }
    expect((await saidBy(ask, "/v1/messages")).at(-1)).toMatchObject({
      ...{ type: "error", error: { type: "overloaded_error" } },
    });
    const headers = { "X-Request-Id": "mine" };
    const told = answer(new Request("http://localhost/", { headers }));
    expect(told.headers.get("x-request-id")).toBe("mine");
    for (const path of ["/health/live", "/health/ready", "/v1/messages"]) {
      const kept = status === "stopping" ? "close" : null;
      expect((await ask(path)).headers.get("Connection")).toBe(kept);
    }
    expect((await ask("/")).headers.get("x-request-id")).toMatch(/^req_/);
  },
);
