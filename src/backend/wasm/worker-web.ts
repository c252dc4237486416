import type { ThreadSetup } from "./platform.ts";
import { serveThread } from "./worker.ts";

/** What a thread tells the page: first that it is ready, or why it has ended. */
export interface ThreadMessage {
  readonly error: string | null;
}

const tell = (error: string | null): void => {
  const message: ThreadMessage = { error };
  globalThis.postMessage(message);
};

globalThis.addEventListener(
  "message",
  ({ data }: MessageEvent<ThreadSetup>) => {
    serveThread(data, () => tell(null)).catch((error) => tell(String(error)));
  },
  { once: true },
);
