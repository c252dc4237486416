import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { Replica } from "./replica.ts";
import { until } from "./until.ts";

/** Stands where Debian's haproxy.cfg stands: before ours, with what a test needs of it. */
const machineConfig = (socket: string) => `global
    log stdout format raw local0
    stats socket ${socket} level admin
`;

/** HAProxy with the file that is shipped, but for the addresses in it. */
export class Balancer implements AsyncDisposable {
  readonly url: string;
  readonly #folder: string;
  readonly #child: ChildProcess;
  #log = "";

  private constructor(url: string, folder: string) {
    this.url = url;
    this.#folder = folder;
    const files = ["machine.cfg", "deltafold.cfg"].flatMap((file) => ["-f", join(folder, file)]);
    this.#child = spawn("haproxy", ["-W", ...files], { stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of [this.#child.stdout!, this.#child.stderr!]) {
      stream.setEncoding("utf8").on("data", (more: string) => {
        this.#log += more;
      });
    }
  }

  /**
   * Resolves once it has found all replicas ready.
   * @param change plants a fault in the file
   */
  static async start(
    replicas: readonly Replica[],
    change: (config: string) => string = (config) => config,
  ): Promise<Balancer> {
    const folder = mkdtempSync(join(tmpdir(), "deltafold-replicas-"));
    const [port, peersPort] = await freePorts(2);
    const addresses: [string, string][] = [
      ["bind :8000", `bind 127.0.0.1:${port}`],
      ["127.0.0.1:10000", `127.0.0.1:${peersPort}`],
      ...replicas.map(({ port }, index): [string, string] => [
        `127.0.0.1:808${index} `,
        `127.0.0.1:${port} `,
      ]),
    ];
    const shipped = readFileSync("deploy/haproxy/deltafold.cfg", "utf8");
    const config = addresses.reduce((text, [from, to]) => replaced(text, from, to), shipped);
    writeFileSync(join(folder, "machine.cfg"), machineConfig(join(folder, "admin.sock")));
    writeFileSync(join(folder, "deltafold.cfg"), change(config));
    const balancer = new Balancer(`http://127.0.0.1:${port}`, folder);
    await balancer.untilAll("UP", replicas);
    return balancer;
  }

  /** Requests that it has sent to each replica. */
  async sent(replica: Replica): Promise<number> {
    return Number((await this.#row(replica))?.["stot"]);
  }

  async untilAll(status: "UP" | "DOWN", replicas: readonly Replica[]): Promise<void> {
    for (const replica of replicas) {
      await until(`HAProxy finds ${replica.url} ${status}`, async () => {
        if (this.#child.exitCode !== null) throw new Error(`HAProxy ended:\n${this.#log}`);
        return (await this.#row(replica))?.["status"] === status;
      });
    }
  }

  /** Reads its files again, and resolves once its new process knows what the old one knew. */
  async reload(): Promise<void> {
    const homes = async () => /used:(\d+)/.exec(await this.#ask("show table replicas"))?.[1];
    const process = async () => /^Pid: (\d+)$/m.exec(await this.#ask("show info"))?.[1];
    const before = { homes: await homes(), process: await process() };
    this.#child.kill("SIGUSR2");
    await until("HAProxy has loaded its files again", async () => {
      const now = await process();
      return now !== undefined && now !== before.process;
    });
    await until("it knows all homes", async () => (await homes()) === before.homes);
  }

  /** Its log so far: where requests went, and how they ended. */
  get log(): string {
    return this.#log;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill("SIGTERM");
    if (this.#child.exitCode === null) await once(this.#child, "close");
    rmSync(this.#folder, { recursive: true });
  }

  async #row({ port }: Replica): Promise<Record<string, string> | undefined> {
    const [head = "", ...lines] = (await this.#ask("show stat")).trimEnd().split("\n");
    const names = head.replace("# ", "").split(",");
    const rows = lines.map((line) => {
      const values = line.split(",");
      return Object.fromEntries(names.map((name, at) => [name, values[at]!]));
    });
    return rows.find((row) => row["addr"] === `127.0.0.1:${port}`);
  }

  /** What its admin socket answers; nothing where it isn't there yet. */
  async #ask(command: string): Promise<string> {
    const socket = connect(join(this.#folder, "admin.sock"));
    try {
      socket.end(`${command}\n`);
      return await text(socket);
    } catch {
      return "";
    }
  }
}

function replaced(config: string, from: string, to: string): string {
  const parts = config.split(from);
  if (parts.length !== 2) throw new Error(`"${from}" isn't in deploy/haproxy/deltafold.cfg once`);
  return parts.join(to);
}

/** Ports that nobody listened at a moment ago. */
async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, "127.0.0.1"));
  await Promise.all(servers.map((server) => once(server, "listening")));
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(servers.map((server) => once(server.close(), "close")));
  return ports;
}
