/** deltafold's commands in processes of their own. */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { pause } from "../clock.ts";
import { DeltafoldError } from "../errors.ts";

/** What a server has to end by itself, once it is told to. */
const stopMs = 10_000;

/** The command line that this process is one of. */
export const ownProgram: string = fileURLToPath(
  new URL(import.meta.url.endsWith(".ts") ? "./main.ts" : "./main.js", import.meta.url),
);

/** A process, and what it wrote so far. */
interface Started {
  readonly child: ChildProcessByStdio<null, Readable, Readable>;
  readonly written: { output: string; errors: string };
  /** Resolves with its exit code, or the signal that ended it. */
  readonly ended: Promise<number | string>;
}

/**
 * What a command writes to its standard output.
 * @param program a command line's entry
 * @throws DeltafoldError where it fails
 */
export async function outputOf(program: string, args: readonly string[]): Promise<string> {
  const started = start(program, args);
  if ((await started.ended) !== 0) throw await failure(started, args);
  return started.written.output;
}

/** A server in a process of its own, which ends with this. */
export class ServerProcess implements AsyncDisposable {
  readonly url: string;
  readonly #started: Started;

  private constructor(started: Started, url: string) {
    this.#started = started;
    this.url = url;
  }

  /**
   * Resolves once it serves.
   * @param program a command line's entry
   * @param args of its `serve`; without a port among them it listens at a free one
   * @throws DeltafoldError where it ends before
   */
  static async start(program: string, args: readonly string[]): Promise<ServerProcess> {
    const line = ["serve", "--port", "0", ...args, "--quiet"];
    const started = start(program, line);
    const { child, written, ended } = started;
    const isOver = ended.then(() => true);
    while (!written.output.includes("\n")) {
      const more = once(child.stdout, "data").then(() => false);
      if (await Promise.race([more, isOver])) throw await failure(started, line);
    }
    return new ServerProcess(started, written.output.trim());
  }

  /** Resolves with its exit code, or the signal that ended it. */
  async end(signal: "SIGTERM" | "SIGKILL"): Promise<number | string> {
    this.#started.child.kill(signal);
    return await this.#started.ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.race([this.end("SIGTERM"), pause(stopMs)]);
    await this.end("SIGKILL");
  }
}

function start(program: string, args: readonly string[]): Started {
  const child = spawn(process.execPath, [program, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    env: withoutSettings(process.env),
  });
  const written = { output: "", errors: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    written.output += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    written.errors += text;
  });
  const ended = once(child, "close").then(([code, signal]) => code ?? signal);
  return { child, written, ended };
}

/** Variables that stand for flags are left out: what is said in `args` is all. */
function withoutSettings(variables: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const others = Object.entries(variables).filter(([name]) => !name.startsWith("DELTAFOLD_"));
  return Object.fromEntries(others);
}

async function failure(
  { written, ended }: Started,
  args: readonly string[],
): Promise<DeltafoldError> {
  const message = `deltafold ${args.join(" ")} ended with ${await ended}: ${written.errors}`;
  return new DeltafoldError("command_failed", message);
}
