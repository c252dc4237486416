import { createParser } from "eventsource-parser";
import { ApiError, errorOf } from "./api-error.ts";
import type { Chunk } from "./chunk.ts";

/** Ends a stream that is whole. */
const done = "[DONE]";

/**
 * The chunks of a streamed reply, as they come. Leaving the loop early cancels the body.
 * @throws ApiError for an error that the server sent, and for a stream that broke off
 */
export async function* chunksOf(body: ReadableStream<Uint8Array>): AsyncGenerator<Chunk, void> {
  const read: { event?: string | undefined; data: string }[] = [];
  const parser = createParser({ onEvent: (event) => read.push(event) });
  const decoder = new TextDecoder();
  for await (const bytes of body) {
    parser.feed(decoder.decode(bytes, { stream: true }));
    for (const { event, data } of read.splice(0)) {
      if (data === done) return;
      if (event === "error") throw errorOf(parsed(data), 500);
      yield parsed(data) as Chunk;
    }
  }
  throw new ApiError("The connection ended before the reply was complete.", null, "cut");
}

function parsed(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch {
    throw new ApiError("The server sent an event that isn't JSON.", null, "bad_event");
  }
}
