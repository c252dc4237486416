import { Hono } from "hono";
import { expect, test } from "vitest";
import { testServer } from "./engine.cases.ts";
import { hostCheck } from "./hosts.ts";

async function statusOf(host: string | null, names: readonly string[] = []): Promise<number> {
  const app = new Hono();
  app.use(hostCheck(names));
  app.get("/", ({ text }) => text("in"));
  app.onError((error) => new Response(null, { status: (error as { status?: number }).status! }));
  const headers: Record<string, string> = host === null ? {} : { Host: host };
  return (await app.request("http://localhost/", { headers })).status;
}

test.each([
  ["localhost", 200],
  ["localhost:8080", 200],
  ["LocalHost:1", 200],
  ["127.0.0.1", 200],
  ["127.0.0.1:65535", 200],
  ["[::1]", 200],
  ["[::1]:8080", 200],
  ["example.org", 403],
  ["localhost.example.org", 403],
  ["example.localhost", 403],
  ["localhost.", 403],
  ["127.0.0.1.example.org", 403],
  ["127.0.0.2", 403],
  ["127.1", 403],
  ["2130706433", 403],
  ["0.0.0.0:8080", 403],
  ["::1", 403],
  ["[::1", 403],
  ["[::ffff:127.0.0.1]", 403],
  ["[0:0:0:0:0:0:0:1]", 403],
  ["localhost:", 403],
  ["localhost:123456", 403],
  ["localhost:80:80", 403],
  ["localhost@example.org", 403],
  ["example.org#localhost", 403],
  ["localhost/", 403],
  ["", 400],
  ["localhost, localhost", 400],
  ["localhost,example.org", 400],
  ["localhost example.org", 400],
])("the host %j gets %i", async (host, status) => {
  expect(await statusOf(host)).toBe(status);
});

test("further names are allowed, at any port, in any letters", async () => {
  const names = ["Box.LAN", "[fd00::1]", "127.0.0.2"];
  for (const host of ["box.lan", "BOX.lan:8080", "[fd00::1]:80", "127.0.0.2:1", "localhost"]) {
    expect(await statusOf(host, names)).toBe(200);
  }
  for (const host of ["lan", "a.box.lan", "[fd00::2]"])
    expect(await statusOf(host, names)).toBe(403);
});

test("a request that came over no connection is for the host of its URL", async () => {
  expect(await statusOf(null)).toBe(200);
});

test("nothing answers a page whose name resolves to this machine", async () => {
  const { app } = testServer({ app: { hosts: [], corsOrigins: ["*"] } });
  const headers = { Host: "rebound.example:8080" };
  for (const path of ["/", "/health", "/health/x", "/metrics", "/v1/models", "/v1/nothing"]) {
    for (const method of ["GET", "POST", "OPTIONS"]) {
      const response = await app.request(path, { method, headers });
      expect(response.status).toBe(403);
      expect(await response.json()).toMatchObject({ error: { code: "host_not_allowed" } });
    }
  }
});

test("probes may call it by any name, and are told the status alone", async () => {
  const { app, backend } = testServer({ app: { hosts: [] } });
  const ask = async (path: string, host: string) => {
    const response = await app.request(path, { headers: { Host: host } });
    return [response.status, await response.json()];
  };
  for (const host of ["10.0.0.7:8080", "rebound.example", "", "a, b"]) {
    for (const path of ["/health/live", "/health/ready"]) {
      expect(await ask(path, host)).toEqual([200, { status: "ok" }]);
    }
  }
  backend.lose();
  await backend.lost;
  expect(await ask("/health/ready", "10.0.0.7:8080")).toEqual([503, { status: "lost" }]);
  const told = { status: "lost", reason: "the fake device was lost" };
  expect(await ask("/health/ready", "localhost:8080")).toEqual([503, told]);
});

test("unless names are given, any host will do", async () => {
  const { app } = testServer();
  const headers = { Host: "anything.example" };
  expect((await app.request("/v1/models", { headers })).status).toBe(200);
});
