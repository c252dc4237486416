import { createInterface, type Interface } from "node:readline";
import type { CliIo } from "../io.ts";

/**
 * The lines that a user types. While it waits for one, it holds the terminal (editing, history);
 * between lines the terminal is as it was, so that Ctrl-C is a signal then.
 */
export class PromptReader implements Disposable {
  readonly #io: CliIo;
  readonly #readline: Interface;
  readonly #lines: string[] = [];
  #closed = false;
  /** Whether the last key was a Ctrl-C at an empty prompt. */
  #leaving = false;
  #wake: () => void = () => {};

  constructor(io: CliIo) {
    this.#io = io;
    const readline = createInterface({
      input: io.stdin,
      // Standard output is for replies, and may be a file.
      output: io.stderr,
      terminal: io.stderr.isTTY ?? false,
      prompt: "> ",
    });
    readline.on("line", (line) => {
      this.#leaving = false;
      this.#lines.push(line);
      this.#wake();
    });
    readline.on("SIGINT", () => this.#interrupt());
    readline.on("close", () => {
      this.#closed = true;
      this.#wake();
    });
    this.#readline = readline;
    this.#release();
  }

  /** The next line; null when there will be none. */
  async next(): Promise<string | null> {
    if (this.#lines.length === 0 && !this.#closed) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      if (this.#readline.terminal) this.#io.stdin.setRawMode?.(true);
      this.#readline.prompt();
      await promise;
      this.#release();
    }
    return this.#lines.shift() ?? null;
  }

  /** No line follows. */
  close(): void {
    if (!this.#closed) this.#readline.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #release(): void {
    if (this.#closed) return;
    this.#readline.pause();
    if (this.#readline.terminal) this.#io.stdin.setRawMode?.(false);
  }

  /** Drops the line begun, or says how to leave, or leaves. */
  #interrupt(): void {
    if (this.#readline.line !== "") {
      this.#readline.write(null, { ctrl: true, name: "e" });
      this.#readline.write(null, { ctrl: true, name: "u" });
      return;
    }
    if (this.#leaving) {
      this.#io.stderr.write("\n");
      this.close();
      return;
    }
    this.#leaving = true;
    this.#io.stderr.write("\nCtrl-C again, or Ctrl-D, leaves the chat.\n");
    this.#readline.prompt();
  }
}
