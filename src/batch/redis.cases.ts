/** A queue server of a test's own: Redis or Valkey, on a free port, with all that it was told on disk. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { nextTask } from "../clock.ts";
import { connectQueue, parseQueueUrl } from "./connection.ts";

/** Debian's redis-tools have the server too, under a name by which it does something else. */
const programs = ["redis-server", "valkey-server", "redis-check-rdb", "valkey-check-rdb"];
const argv0 = "redis-server";

/** The server that this machine has; null for none. */
export const queueProgram: string | null =
  programs.find((program) => spawnSync(program, ["--version"], { argv0 }).status === 0) ?? null;

export class TestQueueServer implements AsyncDisposable {
  readonly url: string;
  readonly #port: number;
  readonly #password: string | null;
  readonly #folder = mkdtempSync(join(tmpdir(), "deltafold-queue-"));
  #child: ChildProcess | null = null;

  private constructor(port: number, password: string | null) {
    this.#port = port;
    this.#password = password;
    this.url = `redis://${password === null ? "" : `:${password}@`}127.0.0.1:${port}`;
  }

  static async start(password: string | null = null): Promise<TestQueueServer> {
    const server = new TestQueueServer(await freePort(), password);
    await server.start();
    return server;
  }

  /** Starts it, with what it held before. */
  async start(): Promise<void> {
    const settings = {
      ...{ port: this.#port, bind: "127.0.0.1", dir: this.#folder, save: "" },
      // What it has said yes to is on the disk.
      ...{ appendonly: "yes", appendfsync: "always" },
      ...(this.#password !== null && { requirepass: this.#password }),
    };
    const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, `${value}`]);
    this.#child = spawn(queueProgram!, args, { argv0, stdio: "ignore" });
    while (!(await this.#answers())) await nextTask();
  }

  async stop(signal: "SIGTERM" | "SIGKILL" = "SIGTERM"): Promise<void> {
    const child = this.#child;
    this.#child = null;
    if (!child || child.exitCode !== null) return;
    child.kill(signal);
    await once(child, "exit");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop("SIGKILL");
    rmSync(this.#folder, { recursive: true });
  }

  async #answers(): Promise<boolean> {
    try {
      (await connectQueue(parseQueueUrl(this.url), () => {})).disconnect();
      return true;
    } catch {
      return false;
    }
  }
}

/** A port that nothing listens at. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  return typeof address === "object" && address ? address.port : 0;
}
