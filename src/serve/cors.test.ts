import { expect, test } from "vitest";
import { testServer } from "./engine.cases.ts";
import { chatPath, hello, post } from "./http.cases.ts";

const site = "https://app.example:8443";

function preflight(origin: string, asked = "content-type, authorization, x-stainless-os") {
  return {
    method: "OPTIONS",
    headers: {
      Origin: origin,
      "Access-Control-Request-Method": "POST",
      "Access-Control-Request-Headers": asked,
    },
  };
}

/** What a reply says to browsers. */
function saidBy({ headers }: Response) {
  const found = [...headers].filter(([name]) => name.startsWith("access-control-"));
  return { ...Object.fromEntries(found), vary: headers.get("Vary") };
}

const preflightSaid = {
  "access-control-allow-headers": "content-type, authorization, x-stainless-os",
  "access-control-allow-methods": "GET, HEAD, POST, DELETE",
  "access-control-max-age": "600",
};
const exposed = { "access-control-expose-headers": "X-Request-Id, Request-Id, Retry-After" };

test("without origins no page learns anything", async () => {
  const { app } = testServer();
  const asked = await app.request(chatPath, preflight(site));
  expect([asked.status, saidBy(asked)]).toEqual([405, { vary: null }]);
  const read = await app.request("/v1/models", { headers: { Origin: site } });
  expect([read.status, saidBy(read)]).toEqual([200, { vary: null }]);
});

test("an allowed page may ask, and see the reply", async () => {
  const { app } = testServer({ app: { corsOrigins: ["https://other.example", site] } });
  const asked = await app.request(chatPath, preflight(site));
  expect(asked.status).toBe(204);
  expect(await asked.text()).toBe("");
  const allowed = { "access-control-allow-origin": site, vary: "Origin" };
  expect(saidBy(asked)).toEqual({ ...preflightSaid, ...allowed });
  for (const stream of [false, true]) {
    const headers = { "Content-Type": "application/json", Origin: site };
    const reply = await post(
      app,
      chatPath,
      { messages: hello, max_tokens: 1, stream },
      { headers },
    );
    expect([reply.status, saidBy(reply)]).toEqual([200, { ...exposed, ...allowed }]);
    await reply.text();
  }
  const refused = await app.request("/v1/nothing", { headers: { Origin: site } });
  expect([refused.status, saidBy(refused)]).toEqual([404, { ...exposed, ...allowed }]);
});

test.each([
  "https://app.example",
  "http://app.example:8443",
  "https://app.example:8443.evil.example",
  "https://APP.example:8443",
  "null",
  "*",
  "",
])("the page of %j isn't another's", async (origin) => {
  const { app } = testServer({ app: { corsOrigins: [site] } });
  const asked = await app.request(chatPath, preflight(origin));
  expect([asked.status, saidBy(asked)]).toEqual([405, { vary: "Origin" }]);
});

test("all pages may be allowed", async () => {
  const { app } = testServer({ app: { corsOrigins: ["*"] } });
  const asked = await app.request(chatPath, preflight("null"));
  const allowed = { "access-control-allow-origin": "*", vary: null };
  expect(saidBy(asked)).toEqual({ ...preflightSaid, ...allowed });
  const read = await app.request("/v1/models", { headers: { Origin: site } });
  expect(saidBy(read)).toEqual({ ...exposed, ...allowed });
});

test("what isn't asked for by a page is as without", async () => {
  const { app } = testServer({ app: { corsOrigins: [site] } });
  const plain = await app.request("/v1/models");
  expect(saidBy(plain)).toEqual({ vary: "Origin" });
  // No preflight: it doesn't say which method it is about.
  const options = await app.request(chatPath, { method: "OPTIONS", headers: { Origin: site } });
  expect(options.status).toBe(405);
});

test("pages of other sites change nothing, even where browsers ask nobody", async () => {
  const { app } = testServer({ app: { corsOrigins: [site] } });
  const from = (site: string, origin: string) =>
    app.request(chatPath, { method: "POST", headers: { "Sec-Fetch-Site": site, Origin: origin } });
  const refused = await from("cross-site", "https://evil.example");
  expect(refused.status).toBe(403);
  expect(await refused.json()).toMatchObject({
    error: {
      message: 'Pages of "https://evil.example" may not use this server.',
      code: "origin_not_allowed",
    },
  });
  // These come as far as the check of their bodies.
  expect((await from("same-origin", "http://localhost:8080")).status).toBe(415);
  expect((await from("none", "null")).status).toBe(415);
  expect((await from("cross-site", site)).status).toBe(415);
  const read = await app.request("/v1/models", { headers: { "Sec-Fetch-Site": "cross-site" } });
  expect(read.status).toBe(200);
});
