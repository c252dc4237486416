import type { SetAlarm } from "../clock.ts";
import { DeltafoldError } from "../errors.ts";
import type { Reply, Stream } from "../stream.ts";
import { cancelledError, errorBody, type Report, shownError } from "./error-reply.ts";
import type { ReplyFormat } from "./reply-format.ts";

const eventHeaders: Record<string, string> = {
  "Content-Type": "text/event-stream; charset=utf-8",
  "Cache-Control": "no-cache",
  // Or nginx would hold events back.
  "X-Accel-Buffering": "no",
};

/** What a client's connection is to a reply. */
export interface Connection {
  /** Hears of failures that are the server's own. */
  readonly report: Report;
  /** For how long events may wait for the client to read on. */
  readonly unreadMs: number;
  readonly setAlarm: SetAlarm;
  /** Ends the connection at once; null where the runtime does so when the reply's body fails. */
  readonly hangUp: (() => void) | null;
}

/** Cancels a stream when its client hangs up. */
export function cancelWith(signal: AbortSignal, stream: Stream): void {
  if (signal.aborted) stream.cancel();
  else signal.addEventListener("abort", () => stream.cancel(), { once: true });
}

/** @throws DeltafoldError where the reply fails */
export async function sendWhole(stream: Stream, format: ReplyFormat): Promise<Response> {
  return Response.json(format.whole(await complete(stream)));
}

/**
 * Answers with server-sent events, which end in `[DONE]`. The stream never waits for its client: what
 * isn't read yet is kept, no more than the reply is long, and events are written as they are read. A
 * client that stops reading is dropped.
 * @throws DeltafoldError where the reply fails before its first token, so that the status tells;
 *   later failures become an error event
 */
export async function sendEvents(
  stream: Stream,
  format: ReplyFormat,
  connection: Connection,
): Promise<Response> {
  const { report, unreadMs, setAlarm, hangUp } = connection;
  await stream.started;
  const frames = framesOf(stream, format, report);
  const encoder = new TextEncoder();
  let stopAlarm = () => {};
  const drop = (controller: ReadableStreamDefaultController) => {
    stream.cancel();
    if (hangUp) hangUp();
    else controller.error(unreadError(unreadMs));
  };
  const body = new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      stopAlarm();
      const { done, value } = await frames.next();
      if (done) return controller.close();
      controller.enqueue(encoder.encode(value));
      // A reader that waits has taken it already, and this is called again.
      if (controller.desiredSize === 0) stopAlarm = setAlarm(unreadMs, () => drop(controller));
    },
    // Not frames.return(), which would wait for the next token.
    cancel: () => {
      stopAlarm();
      stream.cancel();
    },
  });
  return new Response(body, { headers: eventHeaders });
}

async function* framesOf(
  stream: Stream,
  format: ReplyFormat,
  report: Report,
): AsyncGenerator<string, void> {
  try {
    for (const data of format.opening()) yield frame(data);
    for await (const event of stream) yield frame(format.part(event));
    for (const data of format.closing(await complete(stream))) yield frame(data);
  } catch (cause) {
    yield `event: error\n${frame(errorBody(shownError(cause, report)))}`;
  }
  yield "data: [DONE]\n\n";
}

const frame = (data: object): string => `data: ${JSON.stringify(data)}\n\n`;

async function complete(stream: Stream): Promise<Reply> {
  const reply = await stream.result;
  if (reply.finishReason === "cancelled") throw cancelledError();
  return reply;
}

function unreadError(unreadMs: number): DeltafoldError {
  const message = `The client read nothing for ${unreadMs / 1000} s.`;
  return new DeltafoldError("client_too_slow", message, { status: 408 });
}
