/**
 * Brings the queue server that the tests of batches start for themselves. Where this may not be (not root,
 * not Debian) nothing happens, and these tests are reported as skipped.
 */
import { existsSync } from "node:fs";
import { queueProgram } from "../src/batch/redis.cases.ts";
import { apt } from "./install-lavapipe.ts";

export function installQueue(): void {
  const mayInstall = existsSync("/etc/debian_version") && process.getuid?.() === 0;
  if (queueProgram !== null || !mayInstall) return;
  try {
    apt("update", "-qq");
    // The server's program, without the service that the package redis-server starts.
    apt("install", "-y", "-qq", "--no-install-recommends", "redis-tools");
  } catch {
    console.log("redis-tools could not be installed: the tests of batches will be skipped");
  }
}
