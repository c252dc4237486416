import { parentPort, workerData } from "node:worker_threads";
import type { ThreadSetup } from "./platform.ts";
import { serveThread } from "./worker.ts";

await serveThread(workerData as ThreadSetup, () => parentPort!.postMessage("ready"));
process.exit(0);
