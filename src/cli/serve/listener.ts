import { type EventEmitter, once } from "node:events";
import { createServer, type Server, type ServerOptions } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { pause } from "../../clock.ts";
import { DeltafoldError, InputError } from "../../errors.ts";
import { requestHeadersMsMax, requestMsMax } from "../../limits.ts";

/** What clients have, once the server stops, to read what was written for them. */
const graceMs = 500;

/** What `createServer` knows of how long a request may take to arrive. */
export type RequestTimes = Pick<
  ServerOptions,
  "headersTimeout" | "requestTimeout" | "connectionsCheckingInterval"
>;

const requestTimes: RequestTimes = {
  headersTimeout: requestHeadersMsMax,
  requestTimeout: requestMsMax,
  // Node looks every 30 s unless told.
  connectionsCheckingInterval: requestHeadersMsMax / 2,
};

/** @param connection the request's, as apps of Hono take it */
type Fetch = (request: Request, connection: object) => Response | Promise<Response>;

/** A listening HTTP server whose requests go to `fetch`, which may change. */
export class Listener implements AsyncDisposable {
  fetch: Fetch;
  readonly #host: string;
  readonly #server: Server;
  readonly #closed: Promise<unknown>;

  private constructor(host: string, fetch: Fetch, times: RequestTimes) {
    this.#host = host;
    this.fetch = fetch;
    this.#server = createServer(
      times,
      getRequestListener((request, connection) => this.fetch(request, connection)),
    );
    this.#closed = new Promise((resolve) => this.#server.once("close", resolve));
  }

  /** @throws InputError for an address that can't be listened at */
  static async open(
    host: string,
    port: number,
    fetch: Fetch,
    times: RequestTimes = requestTimes,
  ): Promise<Listener> {
    const listener = new Listener(host, fetch, times);
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

  /** Takes no more connections, and closes those that are idle. */
  stop(): void {
    this.#server.close();
  }

  /** Gives busy connections a grace time to end. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.stop();
    await Promise.race([this.#closed, pause(graceMs)]);
    this.#server.closeAllConnections();
    await this.#closed;
  }

  get #address(): AddressInfo {
    return this.#server.address() as AddressInfo;
  }
}

/** Resolves at the first SIGINT or SIGTERM; a second one does what it does by default. */
export async function firstSignal(signals: EventEmitter): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const names = ["SIGINT", "SIGTERM"];
  for (const name of names) signals.once(name, resolve);
  await promise;
  for (const name of names) signals.off(name, resolve);
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
