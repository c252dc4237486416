import { totalmem } from "node:os";

/**
 * Bytes of this machine's memory that a model may take. On macOS the system counts only memory that it
 * makes no use of at all, which is little however much could be had (libuv's src/unix/darwin.c): three
 * quarters of all stand for it there.
 */
export const freeMemoryBytes = (): number =>
  process.platform === "darwin" ? 0.75 * totalmem() : process.availableMemory();
