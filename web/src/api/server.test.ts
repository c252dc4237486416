import { expect, test } from "vitest";
import { ApiError } from "./api-error.ts";
import type { Chunk } from "./chunk.ts";
import { Server } from "./server.ts";

interface Asked {
  readonly path: string;
  readonly init: RequestInit;
}

/** A server whose answers a test gives, and what it was asked. */
function serverOf(
  answer: (asked: Asked) => Response,
  key = "",
): { server: Server; asked: Asked[] } {
  const asked: Asked[] = [];
  const server = new Server(
    async (path, init) => {
      asked.push({ path, init });
      return answer({ path, init });
    },
    () => key,
  );
  return { server, asked };
}

/** A body that comes in the given pieces. */
function streamed(...pieces: (string | Uint8Array)[]): Response {
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
    start: (controller) => {
      for (const each of pieces) controller.enqueue(new Uint8Array(Buffer.from(each)));
      controller.close();
    },
  });
  return new Response(body);
}

async function chunksFrom(answer: Response): Promise<Chunk[]> {
  const { server } = serverOf(() => answer);
  const chunks: Chunk[] = [];
  for await (const chunk of server.chat({}, new AbortController().signal)) chunks.push(chunk);
  return chunks;
}

const refusal = (error: object, status: number) => () => Response.json({ error }, { status });
const frame = (data: object) => `data: ${JSON.stringify(data)}\n\n`;
const end = "data: [DONE]\n\n";

test("chunks are read wherever the body is cut", async () => {
  const chunks = ["a", "b\n", "ü€😀"].map((content) => ({ choices: [{ delta: { content } }] }));
  const bytes = Buffer.from(`: ping\n\n${chunks.map(frame).join(": ping\r\n")}${end}`);
  for (let size = 1; size < 40; size++) {
    const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
      bytes.subarray(at * size, (at + 1) * size),
    );
    expect(await chunksFrom(streamed(...pieces))).toEqual(chunks);
  }
});

test("what comes behind the end is not read", async () => {
  expect(await chunksFrom(streamed(frame({}), end, "data: {\n\n"))).toEqual([{}]);
});

test("an error that comes in the stream is thrown, behind what came before", async () => {
  const { server } = serverOf(() =>
    streamed(
      frame({ token_sha: "a" }),
      `event: error\n${frame({ error: { message: "Gone.", code: "backend_lost" } })}`,
      end,
    ),
  );
  const chunks = server.chat({}, new AbortController().signal);
  expect(await chunks.next()).toEqual({ done: false, value: { token_sha: "a" } });
  await expect(chunks.next()).rejects.toMatchObject({ message: "Gone.", code: "backend_lost" });
});

test("a stream that breaks off, or isn't JSON, is an error", async () => {
  await expect(chunksFrom(streamed(frame({})))).rejects.toMatchObject({ code: "cut" });
  await expect(chunksFrom(streamed("data: {\n\n"))).rejects.toMatchObject({ code: "bad_event" });
  const broken = new ReadableStream<Uint8Array<ArrayBuffer>>({
    pull: (controller) => controller.error(new TypeError("network error")),
  });
  await expect(chunksFrom(new Response(broken))).rejects.toThrow("The server can't be reached.");
});

test("a refusal is told in the server's words", async () => {
  const error = { message: "No such key.", type: "x", param: null, code: "invalid_api_key" };
  const { server } = serverOf(refusal(error, 401));
  const thrown = await server.models().catch((cause) => cause);
  expect(thrown).toBeInstanceOf(ApiError);
  expect(thrown).toMatchObject({ message: error.message, status: 401, code: error.code });
  expect(thrown.wantsKey).toBe(true);
});

test.each(["", "<html>", "null", '{"error":"text"}', '{"error":{"message":7}}'])(
  "a refusal of another shape is an error all the same: %s",
  async (body) => {
    const { server } = serverOf(() => new Response(body, { status: 502 }));
    await expect(server.models()).rejects.toMatchObject({ status: 502, code: null });
    await expect(server.models()).rejects.toThrow("502");
  },
);

test("nobody answers", async () => {
  const { server } = serverOf(() => {
    throw new TypeError("Failed to fetch");
  });
  await expect(server.models()).rejects.toMatchObject({
    message: "The server can't be reached.",
    status: null,
  });
});

test("an abort is no error of the server", async () => {
  const abort = new AbortController();
  const { server } = serverOf(() => {
    abort.abort();
    throw new DOMException("aborted", "AbortError");
  });
  const chunks = server.chat({}, abort.signal);
  await expect(chunks.next()).rejects.toBe(abort.signal.reason);
});

test("the key is sent where there is one", async () => {
  const answer = () => Response.json({ data: [{ id: "m", context_length: 8 }, { id: "n" }] });
  const plain = serverOf(answer);
  expect(await plain.server.models()).toEqual([
    { id: "m", contextTokens: 8 },
    { id: "n", contextTokens: null },
  ]);
  expect(plain.asked).toEqual([{ path: "v1/models", init: { headers: {} } }]);
  const keyed = serverOf(answer, "secret");
  await keyed.server.models();
  expect(keyed.asked[0]!.init.headers).toEqual({ Authorization: "Bearer secret" });
});

test("an ill server tells its health", async () => {
  const { server } = serverOf(() => Response.json({ status: "lost" }, { status: 503 }));
  expect(await server.health()).toEqual({ status: "lost" });
});
