import { afterAll, expect, test } from "vitest";
import { bodyBytesMax } from "../limits.ts";
import { endServers, testServer } from "./engine.cases.ts";
import {
  chatPath,
  type ErrorObject,
  expectError,
  hello,
  post,
  replyTo,
  textPath,
} from "./http.cases.ts";

const server = testServer();
const { app } = server;
afterAll(() => endServers(server));

const chat = (fields: object) => ({ messages: hello, max_tokens: 1, ...fields });

test.each([
  [415, "unsupported_media_type", { "Content-Type": "text/plain" }],
  [415, "unsupported_media_type", { "Content-Type": "multipart/form-data; boundary=x" }],
  [415, "unsupported_media_type", {}],
  [
    415,
    "unsupported_media_type",
    { "Content-Type": "application/json", "Content-Encoding": "gzip" },
  ],
  [413, "body_too_large", { "Content-Type": "application/json", "Content-Length": "8388609" }],
])("%i %s for %j", async (status, code, headers) => {
  const response = await post(app, chatPath, chat({}), { headers });
  expect(response.status).toBe(status);
  expect(((await response.json()) as { error: ErrorObject }).error).toMatchObject({ code });
});

test("a body that turns out too large, and one that isn't UTF-8", async () => {
  const endless = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(new Uint8Array(65_536).fill(32)),
  });
  const init: RequestInit & { duplex: "half" } = { body: endless, duplex: "half" };
  expect((await post(app, chatPath, "", init)).status).toBe(413);
  const spaces = await post(app, chatPath, " ".repeat(bodyBytesMax));
  expect(spaces.status).toBe(400);
  const latin = await post(app, chatPath, "", { body: Uint8Array.of(0x22, 0xe9, 0x22) });
  expect(await latin.text()).toContain("not valid UTF-8");
});

test("a body that breaks off is its sender's fault", async () => {
  const broken = new ReadableStream({ pull: (controller) => controller.error(new Error("cut")) });
  const init: RequestInit & { duplex: "half" } = { body: broken, duplex: "half" };
  const response = await post(app, chatPath, "", init);
  expect(response.status).toBe(400);
  expect(await response.text()).toContain("incomplete_body");
});

test("a type may come with a charset, in any case", async () => {
  const headers = { "Content-Type": "Application/JSON; charset=utf-8" };
  const response = await post(app, chatPath, chat({}), { headers });
  expect(response.status).toBe(200);
});

test.each([
  ["GET", "/v1/unknown", 404, "unknown_url", null],
  ["GET", "/", 404, "unknown_url", null],
  ["GET", "/v1/models/other", 404, "model_not_found", null],
  ["GET", "/v1/models/%E0%A4%A", 404, "model_not_found", null],
  ["GET", chatPath, 405, "method_not_supported", "POST"],
  ["OPTIONS", chatPath, 405, "method_not_supported", "POST"],
  ["DELETE", textPath, 405, "method_not_supported", "POST"],
  ["POST", "/v1/models", 405, "method_not_supported", "GET"],
  ["POST", "/v1/models/nano", 405, "method_not_supported", "GET"],
  ["PUT", "/health", 405, "method_not_supported", "GET"],
])("%s %s is %i %s", async (method, path, status, code, allow) => {
  const response = await app.request(path, { method });
  expect(response.status).toBe(status);
  expect(response.headers.get("Allow")).toBe(allow);
  const { error } = (await response.json()) as { error: ErrorObject };
  expect(error).toMatchObject({ type: "invalid_request_error", code });
});

test("a base URL that leaves /v1 out is told of", async () => {
  const words = "POST /chat/completions. The base URL of clients ends in /v1: here it is /v1/chat";
  await expectError(app, "/chat/completions", chat({}), 404, {
    code: "unknown_url",
    param: null,
    words,
  });
});

test("keys of prototypes are only keys", async () => {
  const evil = '{"__proto__": {"polluted": 1}, "constructor": {"prototype": {"polluted": 1}}}';
  const plain = await replyTo(app, chatPath, chat({}));
  const body =
    `{"__proto__": ${evil}, "messages": [{"role": "user", "content": "Hello", "__proto__": ${evil}}], ` +
    `"max_tokens": 1, "chat_template_kwargs": ${evil}, "stream_options": ${evil}}`;
  const response = await post(app, chatPath, body);
  expect(await response.json()).toMatchObject({ token_sha: plain.token_sha });
  const tools = `[{"type": "function", "function": {"name": "__proto__", "parameters": ${evil}}}]`;
  const withTools = body.replace('"max_tokens"', `"tools": ${tools}, "max_tokens"`);
  expect((await post(app, chatPath, withTools)).status).toBe(200);
  expect(({} as { polluted?: number }).polluted).toBeUndefined();
});

test("a body full of faults is refused at the first", async () => {
  const ones = `[${"1,".repeat(1e6)}1]`;
  const words = "must be";
  const at = (param: string) => ({ code: "invalid_type", param, words });
  await expectError(app, chatPath, `{"messages": ${ones}}`, 400, at("messages[0]"));
  await expectError(app, chatPath, `{"messages": [], "tools": ${ones}}`, 400, at("tools[0]"));
  await expectError(app, chatPath, `{"messages": [], "stop": ${ones}}`, 400, at("stop"));
});
