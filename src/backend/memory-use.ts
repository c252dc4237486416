import type { MemoryUse } from "./backend.ts";

/** All that a backend holds, in bytes. */
export const sumOf = ({ weightBytes, stateBytes, kvBytes, workspaceBytes }: MemoryUse): number =>
  weightBytes + stateBytes + kvBytes + workspaceBytes;
