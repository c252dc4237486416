import { afterAll, expect, test } from "vitest";
import { createApp } from "./app.ts";
import {
  badChats,
  badCompletions,
  chat,
  renamedFields,
  unsupportedFields,
} from "./bad-input.cases.ts";
import { endServers, testServer } from "./engine.cases.ts";
import { chatPath, expectError, post, replyTo, textPath } from "./http.cases.ts";

const server = testServer({ contextTokens: 512 });
const { app } = server;
afterAll(() => endServers(server));

test.each(badChats)("chat: %s", async (_, body, code, param, words) => {
  await expectError(app, chatPath, body, 400, { code, param, words });
});

test.each(badCompletions)("completion: %s", async (_, body, code, param, words) => {
  await expectError(app, textPath, body, 400, { code, param, words });
});

test.each(unsupportedFields)("not honoured, so refused: %s %j", async (field, value) => {
  const words = `${field} is not supported`;
  const expected = { code: "unsupported_parameter", param: field, words };
  await expectError(app, chatPath, chat({ [field]: value }), 400, expected);
  await expectError(app, textPath, { prompt: "a", [field]: value }, 400, expected);
});

test.each(renamedFields)("%s is called %s here", async (field, name) => {
  const words = `${field} is called ${name} here.`;
  const expected = { code: "unsupported_parameter", param: field, words };
  await expectError(app, chatPath, chat({ [field]: false }), 400, expected);
  await expectError(app, textPath, { prompt: "a", [field]: "x" }, 400, expected);
});

test("a prompt and reply over the context name both numbers", async () => {
  const code = "context_length_exceeded";
  const fits = { prompt: Array(511).fill(1) };
  const most = await replyTo(app, textPath, { ...fits, max_tokens: 1 });
  expect(most.usage!.completion_tokens).toBe(1);
  for (const body of [
    { ...fits, max_tokens: 2 },
    { prompt: Array(512).fill(1) },
    { prompt: Array(5120).fill(1) },
  ]) {
    const tokens = body.prompt.length;
    const found =
      "max_tokens" in body
        ? `you requested ${tokens + 2} tokens`
        : `your prompt resulted in ${tokens} tokens`;
    const words = `maximum context length is 512 tokens. However, ${found}`;
    await expectError(app, textPath, body, 400, { code, param: "prompt", words });
    const streamed = { ...body, stream: true };
    await expectError(app, textPath, streamed, 400, { code, param: "prompt", words });
  }
  const long = [{ role: "user", content: "word ".repeat(600) }];
  const expected = { code, param: "messages", words: "maximum context length is 512 tokens" };
  await expectError(app, chatPath, { messages: long, stream: true }, 400, expected);
});

test("a request that the memory of all streams can't hold names both numbers", async () => {
  await using small = testServer({ pages: 2 }).engine;
  const body = { prompt: Array(100).fill(1), max_tokens: 29 };
  const words = "room for 129 tokens of prompt and reply; there is room for 128.";
  const expected = { code: "request_too_large", param: null, words };
  const smallApp = createApp({ engine: small });
  await expectError(smallApp, textPath, body, 400, expected);
  await expectError(smallApp, textPath, { ...body, stream: true }, 400, expected);
  const fits = await replyTo(smallApp, textPath, { ...body, max_tokens: 28, ignore_eos: true });
  expect(fits.usage!.completion_tokens).toBe(28);
});

test("a model without a template completes, but doesn't chat", async () => {
  await using bare = testServer({ chat: false }).engine;
  const response = await post(createApp({ engine: bare }), chatPath, chat({}));
  expect(response.status).toBe(400);
  expect(await response.text()).toContain("has no chat template");
});
