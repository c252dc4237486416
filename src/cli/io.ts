import type { EventEmitter } from "node:events";

export type InputStream = NodeJS.ReadableStream & {
  readonly isTTY?: boolean | undefined;
  setRawMode?: (raw: boolean) => unknown;
};

export type OutputStream = NodeJS.WritableStream & { readonly isTTY?: boolean | undefined };

/** What a command may touch of the process; tests bring their own. */
export interface CliIo {
  readonly stdin: InputStream;
  /** Replies and other results, and nothing else. */
  readonly stdout: OutputStream;
  /** Progress, notes and errors. */
  readonly stderr: OutputStream;
  /** Emits SIGINT, SIGTERM and SIGHUP. */
  readonly signals: EventEmitter;
}
