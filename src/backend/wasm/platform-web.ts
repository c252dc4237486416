import { BackendError, InputError } from "../../errors.ts";
import type { ThreadSetup, WasmPlatform, WasmThread } from "./platform.ts";
import { serveThread } from "./worker.ts";
import type { ThreadMessage } from "./worker-web.ts";

/** Whether this page may share memory with workers. */
const isolated = (): boolean => globalThis.crossOriginIsolated === true;

/** Web workers; on a page that may not share memory with any, its own thread, one pass at a time. */
export const webPlatform: WasmPlatform = {
  get threads() {
    return isolated() ? navigator.hardwareConcurrency : 1;
  },

  async kernels(relaxed) {
    // Bundlers find files by these very expressions. They are right in dist/, not in src/.
    const url = relaxed
      ? new URL("../../wasm/kernels-relaxed.wasm", import.meta.url)
      : new URL("../../wasm/kernels.wasm", import.meta.url);
    const response = await fetch(url).catch((cause) => {
      throw new BackendError(`The kernels can't be fetched from ${url}.`, cause);
    });
    if (response.ok) return new Uint8Array(await response.arrayBuffer());
    throw new BackendError(
      `The kernels are not at ${url}: the server answered status ${response.status}.`,
    );
  },

  spawn: (setup, failed) => (isolated() ? spawnWorker(setup, failed) : spawnHere(setup, failed)),
};

/** @throws InputError where this page can't have that many threads */
export function checkThreads(threads: number): void {
  if (threads === 1 || isolated()) return;
  throw new InputError(
    `${threads} threads need a page that is served with the headers ` +
      "Cross-Origin-Opener-Policy: same-origin and Cross-Origin-Embedder-Policy: require-corp. " +
      "Without them there is one thread.",
  );
}

function spawnWorker(setup: ThreadSetup, failed: (error: Error) => void): Promise<WasmThread> {
  const worker = new Worker(new URL("./worker-web.js", import.meta.url), { type: "module" });
  return new Promise((resolve, reject) => {
    const ended = (why: string) => {
      // A worker outlives its errors.
      worker.terminate();
      const error = new Error(why);
      reject(error);
      failed(error);
    };
    worker.addEventListener("message", ({ data }: MessageEvent<ThreadMessage>) => {
      if (data.error !== null) ended(data.error);
      else resolve({ terminate: async () => worker.terminate() });
    });
    worker.addEventListener("error", ({ message }) => {
      ended(message || "its script could not be loaded");
    });
    worker.postMessage(setup);
  });
}

/** The same thread as a task of the page: it parks without blocking, and blocks while it computes. */
function spawnHere(setup: ThreadSetup, failed: (error: Error) => void): Promise<WasmThread> {
  return new Promise((resolve, reject) => {
    const park = (control: Int32Array, index: number, value: number): unknown =>
      Atomics.waitAsync(control, index, value).value;
    const life: Promise<void> = serveThread(
      setup,
      () => resolve({ terminate: () => life }),
      park,
    ).catch((error) => {
      reject(error);
      failed(error);
    });
  });
}
