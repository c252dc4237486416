import { afterAll, expect, test } from "vitest";
import { endServers, testServer } from "./engine.cases.ts";
import { addPage, type PageFiles } from "./page.ts";

const text = (content: string) => new Uint8Array(Buffer.from(content));
const files: PageFiles = new Map([
  ["/", { type: "text/html; charset=utf-8", bytes: text("<p>chat</p>") }],
  ["/dashboard", { type: "text/html; charset=utf-8", bytes: text("<p>figures</p>") }],
  ["/assets/a-1.js", { type: "text/javascript; charset=utf-8", bytes: text("run()") }],
]);
const pages = testServer();
const { app } = pages;
addPage(app, files);
const without = testServer();
afterAll(() => endServers(pages, without));

test.each([...files])("%s is sent as it is, under a strict policy", async (path, file) => {
  const response = await app.request(path);
  expect(response.status).toBe(200);
  expect(await response.bytes()).toEqual(file.bytes);
  const lasting = path.startsWith("/assets/");
  expect(Object.fromEntries(response.headers)).toMatchObject({
    "content-type": file.type,
    "content-security-policy":
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
      "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": lasting ? "public, max-age=31536000, immutable" : "no-cache",
    etag: expect.stringMatching(/^"[0-9a-f]{64}"$/),
  });
});

test("HEAD has the same headers and no body", async () => {
  const get = await app.request("/");
  const head = await app.request("/", { method: "HEAD" });
  expect(head.status).toBe(200);
  expect(await head.text()).toBe("");
  for (const each of [get, head]) each.headers.delete("X-Request-Id");
  expect([...head.headers]).toEqual([...get.headers]);
});

test("who has a file already isn't sent it again", async () => {
  const tag = (await app.request("/")).headers.get("ETag")!;
  const other = (await app.request("/dashboard")).headers.get("ETag")!;
  expect(other).not.toBe(tag);
  const ask = (known: string) => app.request("/", { headers: { "If-None-Match": known } });
  for (const known of [tag, `W/${tag}`, `${other}, ${tag}`, "*"]) {
    const response = await ask(known);
    expect([response.status, await response.text()]).toEqual([304, ""]);
    expect(response.headers.get("ETag")).toBe(tag);
    expect(response.headers.has("Content-Security-Policy")).toBe(true);
  }
  for (const known of ["", other, tag.slice(1, -1), `"x${tag.slice(1)}`]) {
    expect((await ask(known)).status).toBe(200);
  }
});

test("pages are read, not written to", async () => {
  const response = await app.request("/", { method: "POST" });
  expect(response.status).toBe(405);
  expect(response.headers.get("Allow")).toBe("GET");
  expect((await app.request("/assets/")).status).toBe(404);
  expect((await app.request("/assets/..%2f..%2fpackage.json")).status).toBe(404);
});

test("without pages there is nothing at the root", async () => {
  for (const path of ["/", "/dashboard"]) {
    const response = await without.app.request(path);
    expect(response.status).toBe(404);
    expect(await response.json()).toMatchObject({ error: { code: "unknown_url" } });
  }
});
