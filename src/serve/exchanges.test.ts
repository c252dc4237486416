import { expect, test } from "vitest";
import { nextTask } from "../clock.ts";
import { BackendError } from "../errors.ts";
import { urlCharactersMax } from "../limits.ts";
import { Alarms } from "./alarms.cases.ts";
import { idle, type TestOptions, testServer } from "./engine.cases.ts";
import { chatPath, hello, post, replyTo, textPath } from "./http.cases.ts";
import { jsonLine, type RequestEntry, textLine } from "./request-log.ts";

/** A server whose time passes by 10 ms a pass, and what it says of requests. */
function loggedServer(options: TestOptions = {}) {
  const entries: RequestEntry[] = [];
  let nowMs = 0;
  const clock = { nowMs: () => nowMs, unixSeconds: () => 1_750_000_000 };
  const onPass = () => {
    nowMs += 10;
  };
  const app = { clock, onEnd: (entry: RequestEntry) => entries.push(entry), ...options.app };
  const parts = { clock, ...options.parts };
  const server = testServer({ onPass, ...options, parts, app });
  return { entries, ...server };
}

const time = "2025-06-15T15:06:40Z";
const short = { prompt: "Once", max_tokens: 4, ignore_eos: true };
const endless = { prompt: "x", max_tokens: 4000, ignore_eos: true };

async function idOf(headers: Record<string, string>): Promise<string | null> {
  const { app, entries } = loggedServer();
  const { headers: got } = await app.request("/v1/models", { headers });
  await nextTask();
  expect(entries.map(({ id }) => id)).toEqual([got.get("x-request-id")]);
  return got.get("x-request-id");
}

test.each(["a", "7d3c-41", "trace:1/2?x=%20", "~".repeat(128)])("the id %j is kept", async (id) => {
  expect(await idOf({ "X-Request-Id": id })).toBe(id);
});

test.each(["", "two words", "tab\tbed", "~".repeat(129), "caf\u00e9", "\u0085next line", "a, b"])(
  "the id %j is not taken",
  async (id) => {
    expect(await idOf({ "X-Request-Id": id })).toMatch(/^req_[a-z2-7]{24}$/);
  },
);

test("every request has an id of its own", async () => {
  const ids = await Promise.all(Array.from({ length: 20 }, () => idOf({})));
  expect(new Set(ids).size).toBe(20);
});

test("every kind of reply has its id", async () => {
  const { app } = loggedServer();
  const headers = { "Content-Type": "application/json", "X-Request-Id": "mine" };
  const replies = [
    await app.request("/nothing", { headers }),
    await app.request(chatPath, { headers }),
    await app.request("/health", { method: "HEAD", headers }),
    await post(app, chatPath, "{", { headers }),
    await post(app, textPath, short, { headers }),
    await post(app, textPath, { ...short, stream: true }, { headers }),
  ];
  expect(replies.map(({ status }) => status)).toEqual([404, 405, 200, 400, 200, 200]);
  for (const { headers: got } of replies) expect(got.get("x-request-id")).toBe("mine");
  await Promise.all(replies.map((reply) => reply.text()));
});

test("Anthropic's clients find the id where they look for it", async () => {
  const { app } = loggedServer();
  const headers = { "Content-Type": "application/json", "X-Request-Id": "mine" };
  const body = { messages: hello, max_tokens: 1 };
  const told = async (path: string, body: object | string) => {
    const { status, headers: got } = await post(app, path, body, { headers });
    return [status, got.get("request-id"), got.get("x-request-id")];
  };
  expect(await told("/v1/messages", body)).toEqual([200, "mine", "mine"]);
  expect(await told("/v1/messages", { ...body, stream: true })).toEqual([200, "mine", "mine"]);
  expect(await told("/messages/count_tokens", { messages: hello })).toEqual([200, "mine", "mine"]);
  expect(await told("/v1/messages", "{")).toEqual([400, "mine", "mine"]);
  expect(await told("/v1/messages/none", {})).toEqual([404, "mine", "mine"]);
  expect(await told(chatPath, body)).toEqual([200, null, "mine"]);
});

test("the time to the first token is from the request, not from its last byte", async () => {
  let nowMs = 0;
  const clock = { nowMs: () => nowMs, unixSeconds: () => 0 };
  const onPass = () => {
    nowMs += 10;
  };
  const { app, entries } = loggedServer({ onPass, parts: { clock }, app: { clock } });
  const text = Buffer.from(JSON.stringify(short));
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => {
      nowMs += 1000;
      controller.enqueue(text);
      controller.close();
    },
  });
  const headers = { "Content-Type": "application/json" };
  const init: RequestInit & { duplex: "half" } = { method: "POST", headers, body, duplex: "half" };
  expect((await app.request(textPath, init)).status).toBe(200);
  await nextTask();
  expect(entries).toMatchObject([{ first_token_ms: 1010, total_ms: 1040, tokens_per_second: 100 }]);
  const sum = "deltafold_time_to_first_token_seconds_sum 1.01\n";
  expect(await (await app.request("/metrics")).text()).toContain(sum);
});

test("a reply's entry says what it cost", async () => {
  const { app, entries } = loggedServer();
  const headers = { "Content-Type": "application/json", "X-Request-Id": "mine" };
  await post(app, textPath, short, { headers });
  await nextTask();
  expect(entries).toEqual([
    {
      ...{ time, id: "mine", method: "POST", path: textPath, status: 200, total_ms: 40 },
      ...{ prompt_tokens: 1, cached_tokens: 0, reply_tokens: 4, first_token_ms: 10 },
      ...{ tokens_per_second: 100, finish_reason: "length" },
    },
  ]);
});

test("several replies share an entry", async () => {
  const { app, entries } = loggedServer();
  await replyTo(app, textPath, { ...short, max_tokens: 3, n: 2 });
  await nextTask();
  const sums = { prompt_tokens: 1, reply_tokens: 6, finish_reason: "length,length" };
  expect(entries).toMatchObject([{ status: 200, ...sums }]);
});

test("a streamed reply's entry comes with its end", async () => {
  const { app, entries } = loggedServer();
  const { body } = await post(app, textPath, { ...short, stream: true });
  const reader = body!.getReader();
  while (!(await reader.read()).done) expect(entries).toEqual([]);
  await nextTask();
  expect(entries).toMatchObject([{ status: 200, reply_tokens: 4, finish_reason: "length" }]);
});

test.each<[what: string, path: string, body: object | string, status: number, code: string]>([
  ["no JSON", chatPath, "{", 400, "invalid_json"],
  ["no such URL", "/v2/x", {}, 404, "unknown_url"],
  ["no such method", "/v1/models", {}, 405, "method_not_supported"],
  ["too long a prompt", textPath, { prompt: Array(5000).fill(5) }, 400, "context_length_exceeded"],
])("the entry of %s has its code", async (_, path, body, status, error_code) => {
  const { app, entries } = loggedServer();
  await post(app, path, body);
  await nextTask();
  expect(entries).toEqual([
    { time, id: expect.any(String), method: "POST", path, status, total_ms: 0, error_code },
  ]);
});

test("a reply that fails is an error, before and after its status", async () => {
  const failing = (at: number) =>
    loggedServer({
      fault: (pass) => {
        if (pass === at) throw new BackendError("it broke");
      },
    });
  const first = failing(1);
  await post(first.app, textPath, short);
  const later = failing(3);
  await (await post(later.app, textPath, { ...short, stream: true })).text();
  await nextTask();
  const failed = { prompt_tokens: 1, error_code: "backend_error" };
  expect(first.entries).toMatchObject([{ status: 500, ...failed }]);
  expect(later.entries).toMatchObject([{ status: 200, ...failed }]);
  expect(later.entries[0]).not.toHaveProperty("finish_reason");
});

test.each([true, false])("a client that hangs up has its own entry (stream %s)", async (stream) => {
  const server = loggedServer();
  const hangUp = new AbortController();
  const request = post(server.app, textPath, { ...endless, stream }, { signal: hangUp.signal });
  while (server.engine.totals.replyTokens < 5) await nextTask();
  // The status of a stream is sent with its first token.
  if (stream) await request;
  hangUp.abort();
  if (stream) await (await request).body!.cancel();
  await request;
  await idle(server);
  const [entry] = server.entries;
  expect(entry).toMatchObject({
    ...{ status: stream ? 200 : 499, prompt_tokens: 1, finish_reason: "cancelled" },
    error_code: "client_closed",
  });
  expect(entry!.reply_tokens).toBeGreaterThanOrEqual(5);
});

test("a client that stops reading is dropped, and did not hang up", async () => {
  const alarms = new Alarms();
  const server = loggedServer({ app: { setAlarm: alarms.set, pingMs: 0, unreadMs: 1000 } });
  const destroy = () => {};
  const init = { method: "POST", headers: { "Content-Type": "application/json" } };
  const body = JSON.stringify({ ...endless, stream: true });
  await server.app.request(textPath, { ...init, body }, { outgoing: { destroy } });
  while (alarms.count === 0) await nextTask();
  alarms.pass(1000);
  await idle(server);
  expect(server.entries).toMatchObject([{ status: 200, error_code: "client_too_slow" }]);
  expect(await (await server.app.request("/metrics")).text()).toContain(
    "deltafold_client_disconnections_total 0\n",
  );
});

test("what the server ends itself is no hang-up", async () => {
  const server = loggedServer();
  const whole = post(server.app, textPath, endless);
  while (server.engine.counts.running < 1) await nextTask();
  await server.engine[Symbol.asyncDispose]();
  await whole;
  await nextTask();
  expect(server.entries).toMatchObject([{ status: 503, error_code: "cancelled" }]);
});

test("a path can't write lines of its own, nor steer a terminal", async () => {
  const { app, entries } = loggedServer();
  const forged = "/%0a2025-01-01 forged%1b[31m%c2%9b2J%e2%80%a8%22?key=secret";
  await app.request(forged, { headers: { "X-Request-Id": "\\u001b[2J" } });
  await nextTask();
  const [entry] = entries;
  // Hono gives paths decoded.
  expect(entry!.path).toContain("\n");
  for (const line of [textLine(entry!), jsonLine(entry!)]) {
    expect(line).toMatch(/^[\x20-\x7e]*$/);
    expect(line).not.toContain("secret");
  }
  expect(JSON.parse(jsonLine(entry!))).toEqual(entry);
  const words = textLine(entry!).split(" ");
  expect(words.slice(1, 5)).toEqual([
    ...["\\u001b[2J", "GET"],
    ...['/\\u000a2025-01-01\\u0020forged\\u001b[31m\\u009b2J\\u2028"', "404"],
  ]);
});

test("a long path is cut in the log, and a longer URL refused", async () => {
  const { app, entries } = loggedServer();
  const base = "http://localhost/";
  const longest = `${base}${"a".repeat(urlCharactersMax - base.length)}`;
  expect((await app.request(longest)).status).toBe(404);
  const refused = await app.request(`${longest}a`);
  expect(refused.status).toBe(414);
  expect(await refused.json()).toMatchObject({
    error: {
      message: `A URL may have ${urlCharactersMax} characters, not ${urlCharactersMax + 1}.`,
      code: "url_too_long",
    },
  });
  expect(refused.headers.has("x-request-id")).toBe(true);
  expect(entries.map(({ path }) => path.length)).toEqual([256, 256]);
});

test("nothing that was said is in the log", async () => {
  const { app, entries } = loggedServer();
  const messages = [{ role: "user", content: "canary-prompt" }];
  await replyTo(app, `${chatPath}?user=canary-query`, { messages, max_tokens: 2, user: "canary" });
  await post(app, chatPath, { messages, "canary-field": 1, temperature: "canary-value" });
  await nextTask();
  expect(entries).toHaveLength(2);
  expect(entries.map(jsonLine).join()).not.toContain("canary");
});

test("an entry for people has names but for what is always there", () => {
  const entry: RequestEntry = {
    ...{ time, id: "req_a", method: "POST", path: chatPath, status: 200, total_ms: 1234.5 },
    ...{ key: "ann", prompt_tokens: 12, finish_reason: "stop" },
  };
  expect(textLine(entry)).toBe(
    `${time} req_a POST ${chatPath} 200 total_ms=1234.5 key=ann prompt_tokens=12 finish_reason=stop`,
  );
  expect(jsonLine(entry)).toBe(JSON.stringify(entry));
});

test("a second server's exchanges are its own", async () => {
  const one = loggedServer();
  const other = loggedServer();
  await replyTo(one.app, chatPath, { messages: hello, max_tokens: 1 });
  await nextTask();
  expect([one.entries.length, other.entries.length]).toEqual([1, 0]);
});
