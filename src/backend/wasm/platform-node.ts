import { readFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import { BackendError } from "../../errors.ts";
import type { ThreadSetup, WasmPlatform, WasmThread } from "./platform.ts";

/** From src/ and from dist/ alike, the package's root is three folders up. */
const kernelFolder = new URL("../../../dist/wasm/", import.meta.url);
const workerUrl = new URL(
  import.meta.url.endsWith(".ts") ? "./worker-node.ts" : "./worker-node.js",
  import.meta.url,
);

export const nodePlatform: WasmPlatform = {
  threads: availableParallelism(),

  async kernels(relaxed) {
    const file = new URL(relaxed ? "kernels-relaxed.wasm" : "kernels.wasm", kernelFolder);
    try {
      return new Uint8Array(await readFile(file));
    } catch (cause) {
      throw new BackendError(`${file.pathname} is missing: run \`npm run build\`.`, cause);
    }
  },

  spawn(setup: ThreadSetup, failed: (error: Error) => void): Promise<WasmThread> {
    const worker = new Worker(workerUrl, { workerData: setup });
    return new Promise((resolve, reject) => {
      worker.once("message", () =>
        resolve({
          async terminate() {
            await worker.terminate();
          },
        }),
      );
      const ended = (error: Error) => {
        reject(error);
        failed(error);
      };
      worker.once("error", ended);
      worker.once("exit", (code) => ended(new Error(`it ended with ${code}`)));
    });
  },
};
