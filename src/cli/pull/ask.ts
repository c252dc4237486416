import { createInterface } from "node:readline";
import { InterruptedError } from "../exit.ts";
import type { CliIo } from "../io.ts";

/**
 * Asks the user at the terminal. An empty answer is the default.
 * @throws InterruptedError at Ctrl-C, or where there will be no answer; the signal's reason
 */
export async function askYesNo(
  io: CliIo,
  question: string,
  byDefault: boolean,
  signal: AbortSignal,
): Promise<boolean> {
  const lines = createInterface({
    input: io.stdin,
    output: io.stderr,
    terminal: io.stderr.isTTY ?? false,
    prompt: `${question} [${byDefault ? "Y/n" : "y/N"}] `,
    signal,
  });
  const { promise, resolve, reject } = Promise.withResolvers<boolean>();
  lines.on("SIGINT", () => lines.close());
  lines.on("close", () =>
    reject(signal.aborted ? signal.reason : new InterruptedError("Nothing was done.")),
  );
  lines.on("line", (line) => {
    const answer = line.trim().toLowerCase();
    if (answer === "") resolve(byDefault);
    else if (answer === "y" || answer === "yes") resolve(true);
    else if (answer === "n" || answer === "no") resolve(false);
    else lines.prompt();
  });
  lines.prompt();
  try {
    return await promise;
  } finally {
    lines.close();
  }
}
