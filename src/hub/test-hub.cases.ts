import { createHash } from "node:crypto";
import { EventEmitter, once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";

/** How an answer goes wrong; one answer each. */
export type HubFault = {
  /** The hub's own answer, rather than that of the server to which it sends for large files. */
  readonly atHub?: boolean;
} & (
  | { readonly status: number; readonly headers?: Readonly<Record<string, string>> }
  /** Sends so many bytes, and then nothing; or ends the connection. */
  | { readonly stallAt: number }
  | { readonly cutAt: number }
  /** Says another length, or another range. */
  | { readonly length: number }
  | { readonly range: string }
  /** Knows no ranges. */
  | { readonly whole: true }
  /** Sends other bytes, as many. */
  | { readonly garbage: true }
  /** Compresses although nobody asked. */
  | { readonly packed: true }
  /** Sends this instead. */
  | { readonly text: string }
);

export interface HubRequest {
  readonly at: "hub" | "store";
  readonly path: string;
  readonly range: string | null;
  readonly authorization: string | null;
  readonly userAgent: string | null;
  /** Bytes of files that were sent. */
  sent: number;
}

interface Repo {
  readonly commits: Map<string, ReadonlyMap<string, Uint8Array>>;
  readonly revisions: Map<string, string>;
}

/** What is sent at once. */
const pieceBytes = 16_384;

/**
 * A hub on this machine: its API, files, and a second server to which it sends for large ones, as the real
 * one does. Emits "stalled" when an answer stalls.
 */
export class TestHub extends EventEmitter implements AsyncDisposable {
  readonly requests: HubRequest[] = [];
  readonly #repos = new Map<string, Repo>();
  readonly #faults: { readonly path: string; readonly fault: HubFault }[] = [];
  readonly #hub: Server = createServer((request, response) =>
    this.#serve("hub", request, response),
  );
  readonly #store: Server = createServer((request, response) =>
    this.#serve("store", request, response),
  );

  static async start(): Promise<TestHub> {
    const hub = new TestHub();
    for (const server of [hub.#hub, hub.#store]) {
      server.listen(0, "127.0.0.1");
      await once(server, "listening");
    }
    return hub;
  }

  get url(): string {
    return addressOf(this.#hub);
  }

  /** Bytes of files that were sent so far. */
  get sent(): number {
    return this.requests.reduce((sum, { sent }) => sum + sent, 0);
  }

  /** Gives a model files, under a revision. @returns the commit */
  put(repo: string, files: ReadonlyMap<string, Uint8Array>, revision = "main"): string {
    const hash = createHash("sha1");
    for (const [path, bytes] of files) hash.update(path).update(bytes);
    const commit = hash.digest("hex");
    const kept = this.#repos.get(repo) ?? { commits: new Map(), revisions: new Map() };
    kept.commits.set(commit, files);
    kept.revisions.set(revision, commit);
    this.#repos.set(repo, kept);
    return commit;
  }

  filesOf(repo: string, commit: string): ReadonlyMap<string, Uint8Array> {
    return this.#repos.get(repo)!.commits.get(commit)!;
  }

  /** Answers about paths that end so go wrong: the first by the first fault, and so on. */
  fault(path: string, ...faults: readonly HubFault[]): void {
    for (const fault of faults) this.#faults.push({ path, fault });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const server of [this.#hub, this.#store]) {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    }
  }

  #serve(at: HubRequest["at"], request: IncomingMessage, response: ServerResponse): void {
    const { pathname } = new URL(request.url!, this.url);
    const path = decodeURIComponent(pathname);
    const { range = null, authorization = null } = request.headers;
    const userAgent = request.headers["user-agent"] ?? null;
    const entry: HubRequest = { at, path, range, authorization, userAgent, sent: 0 };
    this.requests.push(entry);
    void this.#answer(entry, response);
  }

  async #answer(entry: HubRequest, response: ServerResponse): Promise<void> {
    const { at, path } = entry;
    const api = /^\/api\/models\/([^/]+\/[^/]+)\/revision\/(.+)$/.exec(path);
    const file = /^\/([^/]+\/[^/]+)\/resolve\/([^/]+)\/(.+)$/.exec(path);
    const [, repoName = "", revision = "", name = ""] = api ?? file ?? [];
    const repo = this.#repos.get(repoName);
    if (!repo) return refuse(response, 401, "RepoNotFound");
    const commit = repo.revisions.get(revision) ?? revision;
    const files = repo.commits.get(commit);
    if (!files) return refuse(response, 404, "RevisionNotFound");
    const bytes = api ? listing(commit, files) : files.get(name);
    if (!bytes) return refuse(response, 404, "EntryNotFound");
    const sends = api === null && at === "hub" && isLarge(name);
    const fault = this.#takeFault(path, sends);
    response.setHeader("x-repo-commit", commit);
    response.setHeader("etag", `"${blobName(name, bytes)}"`);
    if (fault === null && sends) {
      response.setHeader("x-linked-etag", `"${blobName(name, bytes)}"`);
      response.setHeader("x-linked-size", bytes.length);
      response.writeHead(302, { location: `${addressOf(this.#store)}${encodeURI(path)}` }).end();
      return;
    }
    await this.#send(entry, bytes, fault, response);
  }

  #takeFault(path: string, sends: boolean): HubFault | null {
    const index = this.#faults.findIndex(
      (each) => path.endsWith(each.path) && (!sends || each.fault.atHub === true),
    );
    return index < 0 ? null : this.#faults.splice(index, 1)[0]!.fault;
  }

  async #send(
    entry: HubRequest,
    bytes: Uint8Array,
    fault: HubFault | null,
    response: ServerResponse,
  ): Promise<void> {
    if (fault && "status" in fault) {
      response.writeHead(fault.status, fault.headers ?? {}).end();
      return;
    }
    const [from, to] = fault && "whole" in fault ? [] : rangeOf(entry.range, bytes.length);
    let body = bytes.slice(from, to);
    if (fault && "text" in fault) body = new TextEncoder().encode(fault.text);
    if (fault && "garbage" in fault) body = body.map((byte) => byte ^ 1);
    if (fault && "packed" in fault) body = new Uint8Array(gzipSync(body));
    const last = (from ?? 0) + body.length - 1;
    const range = fault && "range" in fault ? fault.range : `bytes ${from}-${last}/${bytes.length}`;
    response.writeHead(from === undefined ? 200 : 206, {
      "content-length": fault && "length" in fault ? fault.length : body.length,
      ...(from !== undefined && { "content-range": range }),
      ...(fault && "packed" in fault && { "content-encoding": "gzip" }),
    });
    const stop = fault && "stallAt" in fault ? fault.stallAt : Number.POSITIVE_INFINITY;
    const cut = fault && "cutAt" in fault ? fault.cutAt : Number.POSITIVE_INFINITY;
    const end = Math.min(body.length, stop, cut);
    for (let done = 0; done < end && !response.destroyed; done += pieceBytes) {
      const piece = body.subarray(done, Math.min(end, done + pieceBytes));
      entry.sent += piece.length;
      if (!response.write(piece)) await writable(response);
    }
    if (end === stop) this.emit("stalled");
    // What was written before reaches the client.
    else if (end === cut) response.socket?.destroySoon();
    else response.end();
  }
}

/** Resolves once more can be written, or nobody reads any more. */
function writable(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const events = ["drain", "close"];
    const settle = () => {
      for (const event of events) response.off(event, settle);
      resolve();
    };
    for (const event of events) response.on(event, settle);
  });
}

const addressOf = (server: Server): string =>
  `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

const isLarge = (path: string): boolean => /\.safetensors$|^tokenizer\.json$/.test(path);

export const hexOf = (algorithm: "sha1" | "sha256", bytes: Uint8Array): string =>
  createHash(algorithm).update(bytes).digest("hex");

/** What the cache calls a file. */
export function blobName(path: string, bytes: Uint8Array): string {
  return isLarge(path) ? hexOf("sha256", bytes) : gitName(bytes);
}

function gitName(bytes: Uint8Array): string {
  return createHash("sha1").update(`blob ${bytes.length}\0`).update(bytes).digest("hex");
}

function listing(commit: string, files: ReadonlyMap<string, Uint8Array>): Uint8Array {
  const siblings = [...files].map(([rfilename, bytes]) => {
    const { length: size } = bytes;
    if (!isLarge(rfilename)) return { rfilename, size, blobId: gitName(bytes) };
    const pointer = new TextEncoder().encode(`pointer to ${hexOf("sha256", bytes)}`);
    const lfs = { sha256: hexOf("sha256", bytes), size, pointerSize: pointer.length };
    return { rfilename, size, blobId: gitName(pointer), lfs };
  });
  return new TextEncoder().encode(JSON.stringify({ id: "…", sha: commit, siblings }));
}

function refuse(response: ServerResponse, status: number, code: string): void {
  response.writeHead(status, { "x-error-code": code }).end();
}

/** Absent where all is asked for. */
function rangeOf(range: string | null, size: number): [number?, number?] {
  const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(range ?? "") ?? [];
  if (first === undefined) return [];
  return [Number(first), last ? Math.min(Number(last) + 1, size) : size];
}
