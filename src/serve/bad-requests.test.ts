import { afterAll, expect, test } from "vitest";
import { promptCharsMin, promptCharsPerTokenMax } from "../limits.ts";
import { createApp } from "./app.ts";
import { type BadRequest, badRequests } from "./bad-requests.cases.ts";
import { endServers, testServer } from "./engine.cases.ts";
import { chatPath, expectError, post, type ReplyObject, replyTo, textPath } from "./http.cases.ts";

const code = "context_length_exceeded";
const server = testServer({ contextTokens: 512 });
const { app } = server;
afterAll(() => endServers(server));

async function send({ path, method, headers, body }: BadRequest): Promise<Response> {
  return await app.request(path, { method, headers, ...(body !== null && { body }) });
}

/** OpenAI's code, or Anthropic's. */
async function codeOf(response: Response): Promise<string | undefined> {
  const { error } = (await response.json()) as {
    error: { code?: string; details?: { error_code: string } };
  };
  return error.code ?? error.details?.error_code;
}

test("there are many, and none is there twice", () => {
  const names = badRequests.map(({ path, what }) => `${path} ${what}`);
  expect(new Set(names).size).toBe(names.length);
  expect(names.length).toBeGreaterThan(250);
});

test.each(badRequests)("refused: $what", async (bad) => {
  const response = await send(bad);
  expect([response.status, await codeOf(response)]).toEqual([bad.status, bad.code]);
});

test("a text that is too long by far is refused unread, and no other", async () => {
  const longest = { prompt: "a".repeat(promptCharsMin) };
  const read = await post(app, textPath, longest);
  expect(await read.text()).toContain(`your prompt resulted in ${promptCharsMin} tokens`);
  const counted = (await (await post(app, "/tokenize", longest)).json()) as { count: number };
  expect(counted.count).toBe(promptCharsMin);
  const over = { prompt: `a${longest.prompt}` };
  const words = `${promptCharsMin + 1} characters in your prompt; at most ${promptCharsMin} are read`;
  for (const path of [textPath, "/tokenize"]) {
    await expectError(app, path, over, 400, { code, param: "prompt", words });
  }
});

test("how long a text may be goes by the context", async () => {
  await using larger = testServer({ contextTokens: 10_000, slots: 1 }).engine;
  const charsMax = 10_000 * promptCharsPerTokenMax;
  const messages = [{ role: "user", content: "a".repeat(charsMax) }];
  const words = `at most ${charsMax} are read`;
  const expected = { code, param: "messages", words };
  await expectError(createApp({ engine: larger }), chatPath, { messages }, 400, expected);
});

test("a good request beside all of them is the same", async () => {
  const good = { prompt: "Once", seed: 3, temperature: 1, max_tokens: 500, ignore_eos: true };
  const alone = await replyTo(app, textPath, good);
  const beside = post(app, textPath, good);
  const statuses = await Promise.all(badRequests.map(async (bad) => (await send(bad)).status));
  expect(statuses).toEqual(badRequests.map(({ status }) => status));
  const { token_sha, choices, usage } = (await (await beside).json()) as ReplyObject;
  expect({ token_sha, choices }).toEqual({ token_sha: alone.token_sha, choices: alone.choices });
  expect(usage!.completion_tokens).toBe(500);
});
