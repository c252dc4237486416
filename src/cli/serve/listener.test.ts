import { Agent, request as httpRequest, type IncomingMessage } from "node:http";
import { connect, type Socket } from "node:net";
import { expect, test } from "vitest";
import { nextTask } from "../../clock.ts";
import { requestHeadBytesMax, requestHeadersMax } from "../../limits.ts";
import { testServer } from "../../serve/engine.cases.ts";
import { standIn } from "../../serve/stand-in.ts";
import { Captured } from "../io.cases.ts";
import { Listener } from "./listener.ts";

const times = { headersTimeout: 30, requestTimeout: 30, connectionsCheckingInterval: 5 };

/** Sends `text` and never the rest; what comes back is whole once the server has hung up. */
async function answerTo(url: string, text: string): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket: Socket = connect(Number(port), hostname);
  const answer = socket.pipe(new Captured(false));
  socket.write(text);
  await new Promise((resolve) => answer.once("finish", resolve));
  return answer.text;
}

const head = "POST / HTTP/1.1\r\nHost: x\r\n";
const okay = () => new Response("in");

test.each([
  ["headers", head],
  ["a body", `${head}Content-Length: 9\r\n\r\n{`],
])("a request whose %s never comes whole is cut", async (_, text) => {
  await using listener = await Listener.open(
    "127.0.0.1",
    0,
    async (request) => new Response(await request.text().catch(() => null)),
    times,
  );
  expect(await answerTo(listener.url, text)).toMatch(/^HTTP\/1\.1 408 /);
});

test("a reply that takes longer than its request may is not cut", async () => {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const reply = writable.getWriter();
  await using listener = await Listener.open("127.0.0.1", 0, () => new Response(readable), times);
  const first = reply.write(Buffer.from("a"));
  const response = await fetch(listener.url, { method: "POST", body: "{}" });
  await first;
  // This one came later and is cut, so the server has looked when the first was older than both.
  expect(await answerTo(listener.url, head)).toMatch(/^HTTP\/1\.1 408 /);
  const last = reply.write(Buffer.from("b"));
  await Promise.all([last, reply.close(), response.text().then((all) => expect(all).toBe("ab"))]);
});

const get = (headers: readonly string[], line = "GET / HTTP/1.1") =>
  `${[line, ...headers].join("\r\n")}\r\n\r\n`;

test.each<[what: string, text: string, status: number]>([
  ["no host", get(["Connection: close"]), 400],
  ["one host", get(["Host: x", "Connection: close"]), 200],
  ["no host in old HTTP", get([], "GET / HTTP/1.0"), 200],
  ["a line that is no HTTP", "GET\r\n\r\n", 400],
  ["a host that is none", get(["Host: a/b", "Connection: close"]), 400],
  ["two lengths", `${head}Content-Length: 1\r\nContent-Length: 2\r\n\r\n`, 400],
  ["a length and chunks", `${head}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n`, 400],
  ["a large header", get(["Host: x", `A: ${"a".repeat(requestHeadBytesMax)}`]), 431],
  ["a long line", get(["Host: x"], `GET /${"a".repeat(requestHeadBytesMax)} HTTP/1.1`), 431],
])("a request with %s", async (_, text, status) => {
  await using listener = await Listener.open("127.0.0.1", 0, okay);
  expect(await answerTo(listener.url, text)).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
});

test.each<[what: string, text: string]>([
  ["a host that is none", get(["Host: a/b", "X-Request-Id: mine"])],
  ["a path that is none", get(["Host: x", "X-Request-Id: mine"], "GET /a\\\\b HTTP/1.1")],
  ["a URL that is none", get(["Host: x", "X-Request-Id: mine"], "GET http://[ HTTP/1.1")],
])("%s is answered as other errors are", async (_, text) => {
  await using listener = await Listener.open("127.0.0.1", 0, okay);
  const answer = await answerTo(listener.url, text);
  expect(answer).toMatch(/^HTTP\/1\.1 400 .*^x-request-id: mine\r$/ims);
  expect(JSON.parse(answer.split("\r\n\r\n")[1]!)).toEqual({
    error: {
      message: "The URL of the request, or its Host header, is malformed.",
      type: "invalid_request_error",
      param: null,
      code: "invalid_url",
    },
  });
});

test("Anthropic's clients are answered in their own way there too", async () => {
  await using listener = await Listener.open("127.0.0.1", 0, okay);
  const answer = await answerTo(listener.url, get(["Host: a/b"], "POST /v1/messages?a HTTP/1.1"));
  expect(answer).toMatch(/^request-id: req_.*"type":"error"/ims);
});

test.each<[what: string, text: string, status: number]>([
  ["old HTTP without a host", get([], "GET /v1/models HTTP/1.0"), 200],
  ["old HTTP with another", get(["Host: evil.example"], "GET /v1/models HTTP/1.0"), 403],
  ["no host", get(["Connection: close"], "GET /v1/models HTTP/1.1"), 400],
  ["an empty host", get(["Host:", "Connection: close"], "GET /v1/models HTTP/1.1"), 400],
  [
    "two hosts",
    get(["Host: localhost", "Host: evil.example", "Connection: close"], "GET /v1/models HTTP/1.1"),
    400,
  ],
  [
    "another host in its URL",
    get(["Host: evil.example", "Connection: close"], "GET http://localhost/v1/models HTTP/1.1"),
    403,
  ],
])("the host check of %s", async (_, text, status) => {
  const { app, engine } = testServer({ app: { hosts: [] } });
  await using listener = await Listener.open("127.0.0.1", 0, app.fetch);
  expect(await answerTo(listener.url, text)).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  await engine[Symbol.asyncDispose]();
});

test("a request with too many headers is told so", async () => {
  await using listener = await Listener.open("127.0.0.1", 0, okay);
  const some = (count: number) =>
    get(["Host: x", "Connection: close", ...Array<string>(count - 2).fill("a: b")]);
  expect(await answerTo(listener.url, some(requestHeadersMax))).toMatch(/^HTTP\/1\.1 200 /);
  const refused = await answerTo(listener.url, some(requestHeadersMax + 1));
  expect(refused).toMatch(/^HTTP\/1\.1 431 .*x-request-id: req_.*"code":"too_many_headers"/s);
  // Newer Node refuses more than one too many by itself.
  expect(await answerTo(listener.url, some(1000))).toMatch(/^HTTP\/1\.1 431 /);
});

interface Answer {
  readonly response: IncomingMessage;
  /** The socket that it came over. */
  readonly socket: Socket;
  readonly text: string;
}

function ask(url: string, agent: Agent): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const asked = httpRequest(url, { agent, headers: { "X-Request-Id": "mine" } }, (response) => {
    const { socket } = response;
    const text = response.pipe(new Captured(false));
    text.once("finish", () => resolve({ response, socket, text: text.text }));
  });
  asked.once("error", reject).end();
  return promise;
}

const agentOf = () => new Agent({ keepAlive: true, maxSockets: 1 });

test("connections beyond the most are told to come again, and those before stay", async () => {
  await using listener = await Listener.open("127.0.0.1", 0, okay, { connectionsMax: 2 });
  const agents = [agentOf(), agentOf(), agentOf()] as const;
  for (const agent of agents.slice(0, 2)) {
    expect((await ask(listener.url, agent)).response.statusCode).toBe(200);
  }
  const { response, socket, text } = await ask(listener.url, agents[2]);
  expect(response.statusCode).toBe(503);
  expect(response.headers).toMatchObject({ "retry-after": "1", "x-request-id": "mine" });
  expect(JSON.parse(text)).toEqual({
    error: {
      message: "There are too many connections. Try again soon.",
      type: "server_error",
      param: null,
      code: "too_many_connections",
    },
  });
  if (!socket.closed) await new Promise((resolve) => socket.once("close", resolve));
  const { socket: kept } = await ask(listener.url, agents[0]);
  kept.destroy();
  // Its place is free once the server has noticed.
  for (;;) {
    const again = await ask(listener.url, agents[2]);
    if (again.response.statusCode === 200) break;
  }
  for (const agent of agents) agent.destroy();
});

test("a server that drains listens on, and has drained once its replies are sent", async () => {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const reply = writable.getWriter();
  await using listener = await Listener.open("127.0.0.1", 0, () => new Response(readable));
  const first = reply.write(Buffer.from("a"));
  const { url } = listener;
  const agent = agentOf();
  const answer = ask(url, agent);
  await first;
  listener.fetch = standIn("stopping", "The server is stopping.");
  let drained = false;
  const ended = listener.drained().then(() => {
    drained = true;
  });
  const statusOf = async (path: string) => {
    const { response, socket } = await ask(url + path, agentOf());
    expect(response.headers.connection).toBe("close");
    if (!socket.closed) await new Promise((resolve) => socket.once("close", resolve));
    return [response.statusCode, response.headers["retry-after"]];
  };
  expect(await statusOf("/health/ready")).toEqual([503, "1"]);
  expect(await statusOf("/health/live")).toEqual([200, undefined]);
  expect(await statusOf("/v1/models")).toEqual([503, "1"]);
  for (let turns = 0; turns < 20; turns++) await nextTask();
  expect(drained).toBe(false);
  await Promise.all([reply.write(Buffer.from("b")), reply.close()]);
  expect((await answer).text).toBe("ab");
  await ended;
  expect(await statusOf("/health/ready")).toEqual([503, "1"]);
  listener.stop();
  await expect(fetch(url)).rejects.toThrow();
  agent.destroy();
});

test("a client that goes is drained too, and so is a server without replies", async () => {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const reply = writable.getWriter();
  await using listener = await Listener.open("127.0.0.1", 0, () => new Response(readable));
  await listener.drained();
  const first = reply.write(Buffer.from("a"));
  const socket = connect(Number(new URL(listener.url).port), "127.0.0.1");
  socket.write(get(["Host: x"]));
  await first;
  const drained = listener.drained();
  socket.destroy();
  await drained;
});

test("a server that stops sends its replies first, and then keeps no connection", async () => {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const reply = writable.getWriter();
  await using listener = await Listener.open("127.0.0.1", 0, () => new Response(readable));
  const first = reply.write(Buffer.from("a"));
  const { url } = listener;
  const agent = agentOf();
  const answer = ask(url, agent);
  await first;
  listener.stop();
  await expect(fetch(url)).rejects.toThrow();
  await Promise.all([reply.write(Buffer.from("b")), reply.close()]);
  const { text, socket } = await answer;
  expect(text).toBe("ab");
  if (!socket.closed) await new Promise((resolve) => socket.once("close", resolve));
  agent.destroy();
});
