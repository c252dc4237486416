import { connect, type Socket } from "node:net";
import { expect, test } from "vitest";
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

test.each([
  ["headers", head],
  ["a body", `${head}Content-Length: 9\r\n\r\n{`],
])("a request whose %s never comes whole is cut", async (_, text) => {
  await using listener = await Listener.open(
    "127.0.0.1",
    0,
    async (request) => new Response(await request.text()),
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
