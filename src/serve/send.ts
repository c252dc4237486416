import type { SetAlarm } from "../clock.ts";
import type { ReplyEvent } from "../engine.ts";
import { DeltafoldError } from "../errors.ts";
import type { Reply, Stream } from "../stream.ts";
import type { Choices } from "./choices.ts";
import { cancelledError, type Report, shownError } from "./error-reply.ts";
import type { Exchange } from "./exchange.ts";
import { PingedFrames, Silence } from "./pings.ts";
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
  /** How long it is silent before a comment says that the reply goes on; 0: none does. */
  readonly pingMs: number;
  readonly setAlarm: SetAlarm;
  /** Hears of the reply's end, and of what went wrong. */
  readonly exchange: Pick<Exchange, "failed" | "streaming">;
  /** Ends the connection at once; null where the runtime does so when the reply's body fails. */
  readonly hangUp: (() => void) | null;
}

/** @throws DeltafoldError where the reply fails */
export async function sendWhole(choices: Choices, format: ReplyFormat): Promise<Response> {
  try {
    await choices.begun;
    return Response.json(format.whole(await completeAll(choices)));
  } finally {
    choices.cancel();
  }
}

/**
 * Answers with server-sent events. Streams never wait for their client: what isn't read yet is kept, no
 * more than the replies are long, and events are written as they are read. A client that stops reading
 * is dropped.
 * @throws DeltafoldError where the first reply fails before its first token, or another can't begin, and
 *   no ping was sent before, so that the status tells; later failures become an event
 */
export async function sendEvents(
  choices: Choices,
  format: ReplyFormat,
  connection: Connection,
): Promise<Response> {
  const { unreadMs, pingMs, setAlarm, exchange, hangUp } = connection;
  const silence = new Silence(pingMs, setAlarm);
  const late = await silence.during(choices.begun).catch((error: unknown) => {
    choices.cancel();
    throw error;
  });
  const frames = new PingedFrames(framesOf(choices, format, connection), silence, late);
  const encoder = new TextEncoder();
  const ended = exchange.streaming();
  let stopAlarm = () => {};
  const end = () => {
    stopAlarm();
    silence.stop();
    ended();
  };
  const drop = (controller: ReadableStreamDefaultController) => {
    const error = unreadError(unreadMs);
    exchange.failed(error);
    choices.cancel();
    if (hangUp) hangUp();
    else controller.error(error);
    end();
  };
  const body = new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      stopAlarm();
      const frame = await frames.next();
      if (frame === null) {
        controller.close();
        return end();
      }
      controller.enqueue(encoder.encode(frame));
      // A reader that waits has taken it already, and this is called again.
      if (controller.desiredSize === 0) stopAlarm = setAlarm(unreadMs, () => drop(controller));
    },
    // The frames are left alone: to end them would wait for the next token.
    cancel: () => {
      choices.cancel();
      end();
    },
  });
  return new Response(body, { headers: eventHeaders });
}

async function* framesOf(
  choices: Choices,
  format: ReplyFormat,
  { report, exchange }: Connection,
): AsyncGenerator<string, void> {
  try {
    await choices.begun;
    yield* written(format.opening());
    for await (const part of partsOf(choices.streams)) {
      const { choice } = part;
      yield* written(
        "event" in part ? format.part(part.event, choice) : format.ended(part.reply, choice),
      );
    }
    yield* written(format.closing(await completeAll(choices)));
  } catch (cause) {
    choices.cancel();
    const error = shownError(cause, report);
    exchange.failed(error);
    yield format.failed(error);
  }
}

/** Nothing where a part writes nothing: a client that reads on would wait for ever for an empty chunk. */
const written = (frames: string): string[] => (frames === "" ? [] : [frames]);

type Part = { readonly choice: number } & (
  | { readonly event: ReplyEvent }
  | { readonly reply: Reply }
);

/** The parts of several streams as they come, and each one's reply behind its last. */
async function* partsOf(streams: readonly Stream[]): AsyncGenerator<Part> {
  const nexts = new Map<number, Promise<Next>>();
  const wait = (choice: number, parts: AsyncGenerator<Part>) => {
    const next = parts.next().then(({ value }) => ({ part: value as Part, parts }));
    // Once one has failed, nobody waits for the others.
    next.catch(() => {});
    nexts.set(choice, next);
  };
  for (const [choice, stream] of streams.entries()) wait(choice, partsOfOne(stream, choice));
  while (nexts.size > 0) {
    const { part, parts } = await Promise.race(nexts.values());
    if ("reply" in part) nexts.delete(part.choice);
    else wait(part.choice, parts);
    yield part;
  }
}

/** A stream's next part, and where those behind it come from. */
interface Next {
  readonly part: Part;
  readonly parts: AsyncGenerator<Part>;
}

async function* partsOfOne(stream: Stream, choice: number): AsyncGenerator<Part> {
  for await (const event of stream) yield { choice, event };
  yield { choice, reply: await complete(stream) };
}

const completeAll = ({ streams }: Choices): Promise<Reply[]> => Promise.all(streams.map(complete));

async function complete(stream: Stream): Promise<Reply> {
  const reply = await stream.result;
  if (reply.finishReason === "cancelled") throw cancelledError();
  return reply;
}

function unreadError(unreadMs: number): DeltafoldError {
  const message = `The client read nothing for ${unreadMs / 1000} s.`;
  return new DeltafoldError("client_too_slow", message, { status: 408 });
}
