import type { Reply, Stream } from "../stream.ts";
import { cancelledError, errorBody, type Report, shownError } from "./error-reply.ts";
import type { ReplyFormat } from "./reply-format.ts";

const eventHeaders: Record<string, string> = {
  "Content-Type": "text/event-stream; charset=utf-8",
  "Cache-Control": "no-cache",
  // Or nginx would hold events back.
  "X-Accel-Buffering": "no",
};

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
 * Answers with server-sent events, which end in `[DONE]`.
 * @throws DeltafoldError where the reply fails before its first token, so that the status tells;
 *   later failures become an error event
 */
export async function sendEvents(
  stream: Stream,
  format: ReplyFormat,
  report: Report,
): Promise<Response> {
  await stream.started;
  const frames = framesOf(stream, format, report);
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      const { done, value } = await frames.next();
      if (done) controller.close();
      else controller.enqueue(encoder.encode(value));
    },
    // Not frames.return(), which would wait for the next token.
    cancel: () => stream.cancel(),
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
