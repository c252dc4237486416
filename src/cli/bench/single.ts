import type { OpenOptions } from "../../node.ts";

/** One stream, of which nothing is cached. */
export const single: OpenOptions = { parallel: 1, promptCacheBytes: 0 };
