/** A process's memory as it is after a full collection, through its inspector (`node --inspect`). */
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";

/**
 * Bids a process collect all its garbage and give back what it freed: what its memory still holds then
 * is in use. The protocol is https://chromedevtools.github.io/devtools-protocol/v8/HeapProfiler.
 */
export class Collector {
  readonly #socket: WebSocket;
  readonly #asked = new Map<number, PromiseWithResolvers<void>>();
  #last = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.addEventListener("message", ({ data }: MessageEvent) => {
      const { id, error } = JSON.parse(data);
      if (error === undefined) this.#asked.get(id)?.resolve();
      else this.#asked.get(id)?.reject(new Error(error.message));
      this.#asked.delete(id);
    });
    socket.addEventListener("close", () => {
      for (const { reject } of this.#asked.values()) reject(new Error("the process ended"));
    });
  }

  /** @param stderr of a process started with `--inspect`, which says there where to connect to */
  static async connect(stderr: Readable): Promise<Collector> {
    const socket = new WebSocket(await inspectorUrl(stderr));
    await new Promise((resolve, reject) => {
      socket.addEventListener("open", resolve);
      socket.addEventListener("error", reject);
    });
    return new Collector(socket);
  }

  async collect(): Promise<void> {
    const id = ++this.#last;
    const asked = Promise.withResolvers<void>();
    this.#asked.set(id, asked);
    this.#socket.send(JSON.stringify({ id, method: "HeapProfiler.collectGarbage" }));
    await asked.promise;
  }

  close(): void {
    this.#socket.close();
  }
}

/** What else the process writes there is passed on. */
async function inspectorUrl(stderr: Readable): Promise<string> {
  const lines = createInterface({ input: stderr });
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  lines.on("line", (line) => {
    const url = /^Debugger listening on (ws:\S+)/.exec(line)?.[1];
    if (url === undefined) console.error(line);
    else resolve(url);
  });
  lines.on("close", () => reject(new Error("the process ended before its inspector listened")));
  return await promise;
}
