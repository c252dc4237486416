import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { extname } from "node:path";

/** What a test server sends of a file, and how it goes wrong. */
export interface Serving {
  readonly bytes: Uint8Array;
  readonly etag?: string;
  /** Whether it knows ranges; true unless said. */
  readonly ranges?: boolean;
  /** Asked at each answer. */
  readonly fault?: () => Fault;
}

/** What is wrong with an answer. */
export interface Fault {
  readonly status?: number;
  /** Null takes a header away. */
  readonly headers?: Readonly<Record<string, string | null>>;
  /** How much of the body is sent. */
  readonly bytes?: number;
  /** Ends the connection after that. */
  readonly cut?: boolean;
}

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

type Find = (path: string) => Promise<Serving | null> | Serving | null;
type Headers = (path: string) => Record<string, string>;

export interface Asked {
  readonly path: string;
  readonly status: number;
  /** Bytes of the body that were sent. */
  readonly bytes: number;
}

const types: Record<string, string> = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".mjs": "text/javascript",
  ".wasm": "application/wasm",
  ".json": "application/json",
};

/** A server on this machine that remembers what it was asked for. */
export class TestServer implements AsyncDisposable {
  readonly asked: Asked[] = [];
  readonly #find: Find;
  readonly #headers: Headers;
  readonly #server: Server;

  private constructor(find: Find, headers: Headers) {
    this.#find = find;
    this.#headers = headers;
    this.#server = createServer((request, response) => void this.#answer(request, response));
  }

  static async start(find: Find, headers: Headers = () => ({})): Promise<TestServer> {
    const server = new TestServer(find, headers);
    server.#server.listen(0, "127.0.0.1");
    await once(server.#server, "listening");
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = decodeURIComponent(new URL(request.url!, this.url).pathname);
    const serving = await this.#find(path);
    const headers = { ...this.#headers(path), "content-type": types[extname(path)] ?? "" };
    const answer = serving
      ? answerTo(serving, request.headers.range)
      : { status: 404, headers: {}, body: new Uint8Array() };
    const fault = serving?.fault?.() ?? {};
    const status = fault.status ?? answer.status;
    const body = answer.body.subarray(0, fault.bytes);
    this.asked.push({ path, status, bytes: body.length });
    response.writeHead(status, withoutNulls({ ...headers, ...answer.headers, ...fault.headers }));
    if (fault.cut) response.write(body, () => response.destroy());
    else response.end(body);
  }
}

function withoutNulls(headers: Record<string, string | null>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => (value === null ? [] : [[name, value]])),
  );
}

function answerTo({ bytes, etag, ranges }: Serving, asked: string | undefined): Answer {
  const own: Record<string, string> = etag === undefined ? {} : { etag };
  const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(asked ?? "") ?? [];
  if (first === undefined || ranges === false) {
    const headers = { ...own, "content-length": String(bytes.length) };
    return { status: 200, headers, body: bytes };
  }
  const start = Number(first);
  const body = bytes.subarray(start, Number(last || bytes.length - 1) + 1);
  const part = body.length === 0 ? "*" : `${start}-${start + body.length - 1}`;
  const headers = { ...own, "content-range": `bytes ${part}/${bytes.length}` };
  return { status: body.length === 0 ? 416 : 206, headers, body };
}

/** Files of a folder by their path below it; null where there is none. */
export async function fileIn(folder: URL, path: string): Promise<Serving | null> {
  try {
    const bytes = await readFile(new URL(`./${path}`, folder));
    return { bytes, etag: `"${bytes.length}"` };
  } catch {
    return null;
  }
}
