import { once } from "node:events";
import { createServer } from "node:net";
import { expect, test } from "vitest";
import { connectQueue, parseQueueUrl, QueueError } from "./connection.ts";
import { freePort } from "./redis.cases.ts";

test("an address has a name without its password", () => {
  expect(parseQueueUrl("redis://box")).toEqual({
    name: "redis://box:6379",
    options: { host: "box", port: 6379, db: 0 },
  });
  expect(parseQueueUrl("rediss://ann:s%40@[fd00::1]:7000/3")).toEqual({
    name: "rediss://[fd00::1]:7000/3",
    options: { host: "fd00::1", port: 7000, db: 3, username: "ann", password: "s@", tls: {} },
  });
});

test.each([
  "",
  "box:6379",
  "http://:secret@box",
  "redis://:secret@box/a",
  "redis://:secret@box?x=1",
])("%j is no address of a queue, and is not shown", (text) => {
  const parse = () => parseQueueUrl(text);
  expect(parse).toThrow("The queue must be redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE].");
  expect(parse).not.toThrow("secret");
});

const errorOf = async (url: string): Promise<QueueError> => {
  const opened = connectQueue(parseQueueUrl(url), () => {});
  const error = await opened.then(() => null).catch((caught) => caught);
  expect(error).toBeInstanceOf(QueueError);
  return error;
};

test("a server that isn't there is told at once", async () => {
  const port = await freePort();
  expect(await errorOf(`redis://:secret@127.0.0.1:${port}`)).toMatchObject({
    code: "queue_unreachable",
    message: `The queue redis://127.0.0.1:${port} can't be used: nothing listens there.`,
  });
});

test("so is one that is another kind of server", async () => {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n"));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address ? address.port : 0;
  const error = await errorOf(`redis://127.0.0.1:${port}`);
  expect(error.code).toBe("queue_unreachable");
  server.close();
});
