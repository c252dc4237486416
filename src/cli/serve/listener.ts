import { type EventEmitter, once } from "node:events";
import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { getRequestListener, RequestError } from "@hono/node-server";
import { pause } from "../../clock.ts";
import { DeltafoldError, InputError } from "../../errors.ts";
import {
  connectionsMaxDefault,
  requestHeadBytesMax,
  requestHeadersMax,
  requestHeadersMsMax,
  requestMsMax,
} from "../../limits.ts";
import { shownError } from "../../serve/error-reply.ts";
import { refusedReply } from "../../serve/stand-in.ts";

/** What clients have, once the server stops, to read what was written for them. */
const graceMs = 500;

/** Connections beyond the most, which are told so; what comes on top is closed without a word. */
const refusedConnections = 64;

/** What `createServer` knows of how long a request may take to arrive. */
type RequestTimes = Pick<
  ServerOptions,
  "headersTimeout" | "requestTimeout" | "connectionsCheckingInterval"
>;

export interface ListenerLimits extends RequestTimes {
  /** Connections at once. */
  readonly connectionsMax: number;
}

const limitsDefault: ListenerLimits = {
  headersTimeout: requestHeadersMsMax,
  requestTimeout: requestMsMax,
  // Node looks every 30 s unless told.
  connectionsCheckingInterval: requestHeadersMsMax / 2,
  connectionsMax: connectionsMaxDefault,
};

/** What comes with a request, as apps of Hono take it. */
interface Connection {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
}

export type Fetch = (request: Request, connection: Connection) => Response | Promise<Response>;

/** A listening HTTP server whose requests go to `fetch`, which may change. */
export class Listener implements AsyncDisposable {
  fetch: Fetch;
  readonly #host: string;
  readonly #server: Server;
  readonly #closed: Promise<unknown>;
  readonly #connections = new Set<Socket>();
  /** Of these, those that came when there were too many. */
  readonly #surplus = new WeakSet<Socket>();
  /** Replies that aren't sent yet, those to requests that are still coming among them. */
  readonly #replies = new Set<ServerResponse>();

  private constructor(host: string, fetch: Fetch, limits: ListenerLimits) {
    const { connectionsMax, ...times } = limits;
    this.#host = host;
    this.fetch = fetch;
    const server = createServer(
      { ...times, maxHeaderSize: requestHeadBytesMax },
      (incoming, outgoing) => this.#listen(incoming, outgoing),
    );
    // Node drops headers beyond this number, so that one too many is seen.
    server.maxHeadersCount = requestHeadersMax + 1;
    server.maxConnections = connectionsMax + refusedConnections;
    server.on("connection", (socket) => this.#connected(socket, connectionsMax));
    this.#server = server;
    this.#closed = new Promise((resolve) => server.once("close", resolve));
  }

  /** @throws InputError for an address that can't be listened at */
  static async open(
    host: string,
    port: number,
    fetch: Fetch,
    limits: Partial<ListenerLimits> = {},
  ): Promise<Listener> {
    const listener = new Listener(host, fetch, { ...limitsDefault, ...limits });
    const server = listener.#server.listen(port, host);
    await once(server, "listening").catch((cause) => fail(host, port, cause));
    return listener;
  }

  get url(): string {
    const host = this.#host.includes(":") ? `[${this.#host}]` : this.#host;
    return `http://${host}:${this.#address.port}`;
  }

  /** Whether this machine alone can connect. */
  get isLoopback(): boolean {
    return /^(127\.|::1$)/.test(this.#address.address);
  }

  /** Takes no more connections, and closes those that are idle or become so. */
  stop(): void {
    this.#server.close();
  }

  /** Resolves once no reply is being written, though requests may come still. */
  async drained(): Promise<void> {
    for (const reply of this.#replies) {
      await new Promise<void>((resolve) => reply.once("close", resolve));
    }
  }

  /** Gives busy connections a grace time to end. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.stop();
    await Promise.race([this.#closed, pause(graceMs)]);
    this.#server.closeAllConnections();
    await this.#closed;
  }

  #connected(socket: Socket, connectionsMax: number): void {
    if (this.#connections.size >= connectionsMax) this.#surplus.add(socket);
    else this.#connections.add(socket);
    socket.once("close", () => this.#connections.delete(socket));
  }

  /** A listener of its own for each request: an error of the adapter names none. */
  #listen(incoming: IncomingMessage, outgoing: ServerResponse): void {
    this.#replies.add(outgoing);
    outgoing.once("close", () => this.#sent(outgoing));
    const listen = getRequestListener(
      (request) => {
        const error = this.#refusal(incoming);
        return error ? refusedFor(incoming, error) : this.fetch(request, { incoming, outgoing });
      },
      // HTTP/1.0 knows no Host; HTTP/1.1 without one, Node refuses.
      { hostname: "localhost", errorHandler: (cause) => refusedFor(incoming, errorOf(cause)) },
    );
    void listen(incoming, outgoing);
  }

  #sent(outgoing: ServerResponse): void {
    this.#replies.delete(outgoing);
    // A server that stops keeps no connection for a next request.
    if (!this.#server.listening) this.#server.closeIdleConnections();
  }

  /** Why the limits don't let a request in; null for others. */
  #refusal({ rawHeaders, socket }: IncomingMessage): DeltafoldError | null {
    if (this.#surplus.has(socket)) {
      const message = "There are too many connections. Try again soon.";
      return new DeltafoldError("too_many_connections", message, { status: 503 });
    }
    if (rawHeaders.length / 2 <= requestHeadersMax) return null;
    const message = `A request may have ${requestHeadersMax} headers.`;
    return new DeltafoldError("too_many_headers", message, { status: 431 });
  }

  get #address(): AddressInfo {
    return this.#server.address() as AddressInfo;
  }
}

/** Ends the connection too: who knows what comes over it next. */
function refusedFor({ url = "", headers }: IncomingMessage, error: DeltafoldError): Response {
  const givenId = headers["x-request-id"];
  const [path = ""] = url.split("?");
  const reply = refusedReply(path, typeof givenId === "string" ? givenId : null, error);
  reply.headers.set("Connection", "close");
  return reply;
}

/** What to tell of a request that no `Request` could be made of, or whose `fetch` failed. */
function errorOf(cause: unknown): DeltafoldError {
  if (!(cause instanceof RequestError)) return shownError(cause, console.error);
  const message = "The URL of the request, or its Host header, is malformed.";
  return new InputError(message, null, "invalid_url");
}

const stopSignals = ["SIGINT", "SIGTERM"] as const;

/** Resolves with the first SIGINT or SIGTERM; a second one does what it does by default. */
export async function firstSignal(signals: EventEmitter): Promise<(typeof stopSignals)[number]> {
  const { promise, resolve } = Promise.withResolvers<(typeof stopSignals)[number]>();
  const listeners = stopSignals.map((name) => ({ name, listener: () => resolve(name) }));
  for (const { name, listener } of listeners) signals.once(name, listener);
  const first = await promise;
  for (const { name, listener } of listeners) signals.off(name, listener);
  return first;
}

function fail(host: string, port: number, cause: NodeJS.ErrnoException): never {
  const reasons = new Map([
    ["EADDRINUSE", `port ${port} is in use; choose another with --port`],
    ["EACCES", `port ${port} needs rights that this user doesn't have; choose another with --port`],
    ["EADDRNOTAVAIL", "this machine doesn't have that address; choose another with --host"],
    ["ENOTFOUND", "there is no such host; choose another with --host"],
  ]);
  const reason = reasons.get(cause.code ?? "");
  if (reason) throw new InputError(`Can't listen at ${host}: ${reason}.`);
  throw new DeltafoldError("listen_failed", `Can't listen at ${host}: ${cause.message}`, { cause });
}
