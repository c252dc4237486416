import { ServerProcess } from "../../src/cli/own-process.ts";

const flags = [
  ...["--backend", "wasm", "--threads", "1", "--prompt-cache-gib", "0.25", "--queue", "8"],
  // As in deploy/systemd: more than the balancer's checks take.
  ...["--drain-delay-seconds", "5", "--drain-seconds", "120"],
];

/** A server of nano that can be killed, drained, and started again where it was. */
export class Replica implements AsyncDisposable {
  readonly url: string;
  #process: ServerProcess;

  private constructor(process: ServerProcess) {
    this.url = process.url;
    this.#process = process;
  }

  static async start(): Promise<Replica> {
    return new Replica(await ServerProcess.start("bin/deltafold.js", flags));
  }

  get port(): string {
    return new URL(this.url).port;
  }

  /** @returns its exit code, or the signal that ended it */
  async end(signal: "SIGTERM" | "SIGKILL"): Promise<number | string> {
    return await this.#process.end(signal);
  }

  async startAgain(): Promise<void> {
    this.#process = await ServerProcess.start("bin/deltafold.js", [...flags, "--port", this.port]);
  }

  /** What it counts by itself, without the balancer: the sum over a metric's labels. */
  async count(metric: string): Promise<number> {
    const text = await (await fetch(`${this.url}/metrics`)).text();
    const values = [...text.matchAll(new RegExp(`^${metric}(?:\\{.*\\})? (\\S+)$`, "gm"))];
    return values.reduce((sum, [, value]) => sum + Number(value), 0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Not drained: nobody waits any more.
    await this.end("SIGKILL");
  }
}
