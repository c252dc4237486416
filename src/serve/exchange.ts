import type { Context } from "hono";
import type { DeltafoldError } from "../errors.ts";
import type { Reply, Stream } from "../stream.ts";
import type { KnownKey } from "./keys.ts";
import { isMessagesPath } from "./messages-error.ts";
import { randomId } from "./reply-format.ts";

/** What nginx writes of a request whose client was gone before it was answered. */
const hungUpStatus = 499;

/** A client's own id is used where it is harmless in logs and headers. */
const idPattern = /^[\x21-\x7e]{1,128}$/;

/** A reply that didn't fail. */
export interface Served {
  readonly reply: Reply;
  /** For how long it waited for a slot, in ms; null where it never had one. */
  readonly queueMs: number | null;
  /** From the request, its body's way here included, to the reply's first token. */
  readonly firstTokenMs: number;
}

/** One request and what became of it, for the log and the metrics. */
export class Exchange {
  readonly id: string;
  readonly method: string;
  /** Without the query, which may hold anything. */
  readonly path: string;
  readonly startMs: number;
  /** What its path is an instance of; null where there is no such URL. */
  route: string | null = null;
  /** The key that it brought; null where none was asked for. */
  key: KnownKey | null = null;
  /** Whether it is for a host that isn't this one, so that nothing more may be told than must be. */
  isForeign = false;
  /** Of what went wrong; null where nothing did. */
  errorCode: string | null = null;
  #status = 0;
  #hungUp = false;
  #streams: readonly Stream[] = [];
  #served: readonly Served[] = [];
  #sent: Promise<void> = Promise.resolve();

  constructor({ req }: Context, startMs: number) {
    this.id = requestId(req.raw.headers.get("x-request-id"));
    this.method = req.method;
    this.path = req.path;
    this.startMs = startMs;
  }

  /** As it was sent, or would have been. */
  get status(): number {
    return this.#status;
  }

  /** Whether its client went before the end. */
  get hungUp(): boolean {
    return this.#hungUp;
  }

  get streams(): readonly Stream[] {
    return this.#streams;
  }

  /** Of the streams, once the exchange has ended. */
  get served(): readonly Served[] {
    return this.#served;
  }

  failed({ code }: DeltafoldError): void {
    this.errorCode ??= code;
  }

  /** It is answered by what these say, those that are still to come among them. */
  replying(signal: AbortSignal, streams: readonly Stream[]): void {
    this.#streams = streams;
    const gone = () => {
      this.#hungUp ||= this.errorCode === null;
      this.errorCode ??= "client_closed";
    };
    if (signal.aborted) gone();
    else signal.addEventListener("abort", gone, { once: true });
  }

  /** Its reply goes on after its status: until what is returned is called. */
  streaming(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#sent = promise;
    return resolve;
  }

  /** Resolves once everything is sent, or nothing more can be, and the rounds have let its streams go. */
  async ended(response: Response): Promise<void> {
    // Whoever hung up before has seen no status.
    this.#status = this.#hungUp ? hungUpStatus : response.status;
    await this.#sent;
    const results = await Promise.allSettled(
      this.#streams.map((stream) => served(stream, this.startMs)),
    );
    this.#served = results.flatMap((each) => (each.status === "fulfilled" ? each.value : []));
  }
}

async function served(stream: Stream, requestMs: number): Promise<Served> {
  const reply = await stream.result;
  const firstTokenMs = stream.startMs - requestMs + reply.timings.prefillMs;
  return { reply, queueMs: stream.queueMs, firstTokenMs };
}

const exchanges = new WeakMap<Request, Exchange>();

export function keepExchange({ req }: Context, exchange: Exchange): void {
  exchanges.set(req.raw, exchange);
}

/** What a request's context belongs to. */
export const exchangeOf = ({ req }: Context): Exchange => exchanges.get(req.raw)!;

/** The id that a request brought, or a new one. */
export function requestId(given: string | null): string {
  return given !== null && idPattern.test(given) ? given : randomId("req_");
}

/** The headers by which a reply tells its request's id: Anthropic's clients read another. */
export function idHeaders(path: string, id: string): Record<string, string> {
  return { "X-Request-Id": id, ...(isMessagesPath(path) && { "Request-Id": id }) };
}
