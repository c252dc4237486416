import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { expect, test } from "vitest";
import { testServer } from "../../serve/engine.cases.ts";
import { chatPath, hello } from "../../serve/http.cases.ts";
import { joinReply, type ReplyObject, replyEvents } from "../reply-client.ts";
import { Listener } from "./listener.ts";

const idle = 1000;
const busy = 64;

/** A connection that has brought a request, and stays. */
async function idleConnection(port: number): Promise<Socket> {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  socket.write("GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  const [answer] = await once(socket, "data");
  expect(`${answer}`).toMatch(/^HTTP\/1\.1 200 /);
  return socket;
}

test("beside 1,000 connections that are idle, 64 that are busy have all that they ask for", async () => {
  const { app, engine } = testServer({ slots: 8 });
  await using listener = await Listener.open("127.0.0.1", 0, (request, connection) =>
    app.fetch(request, connection),
  );
  const port = Number(new URL(listener.url).port);
  const sockets = await Promise.all(Array.from({ length: idle }, () => idleConnection(port)));
  const ask = async (index: number) => {
    const body = { messages: hello, seed: index, max_tokens: 2 + (index % 7), ignore_eos: true };
    const events: ReplyObject[] = [];
    for await (const event of replyEvents(listener.url + chatPath, body)) events.push(event);
    return joinReply(events);
  };
  const replies = await Promise.all(Array.from({ length: busy }, (_, index) => ask(index)));
  expect(replies.map(({ tokens }) => tokens)).toEqual(replies.map((_, index) => 2 + (index % 7)));
  for (const socket of sockets) socket.destroy();
  await engine[Symbol.asyncDispose]();
});
