/**
 * Brings the queue server that the tests of batches start for themselves. Where this may not be (not root,
 * not Debian) nothing happens, and these tests are reported as skipped.
 */
import { queueProgram } from "../src/batch/redis.cases.ts";
import { install } from "./apt.ts";

export function installQueue(): void {
  // The server's program, without the service that the package redis-server starts.
  install("redis-tools", () => queueProgram !== null, "the tests of batches will be skipped");
}
