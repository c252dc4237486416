import { InterruptedError } from "../exit.ts";
import type { CliIo } from "../io.ts";

/**
 * Gives `work` a signal that SIGINT and SIGTERM abort.
 * @param message for the user, where they do
 */
export async function untilInterrupted<T>(
  { signals }: CliIo,
  message: string,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const interrupt = () => controller.abort(new InterruptedError(message));
  const names = ["SIGINT", "SIGTERM"];
  for (const name of names) signals.on(name, interrupt);
  try {
    return await work(controller.signal);
  } finally {
    for (const name of names) signals.off(name, interrupt);
  }
}
