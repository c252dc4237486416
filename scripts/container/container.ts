import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import type { Image } from "./image.ts";

const path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** Seconds that it may take to load nano, on a machine that is busy. */
const startSeconds = 120;

/**
 * An image's command in a root folder, with mounts of its own: the root is read-only, and the volume is
 * not. It shares the network, so it listens at loopback, where no key is asked for.
 */
export class Container implements AsyncDisposable {
  readonly url: string;
  readonly #root: string;
  readonly #image: Image;
  readonly #child: ChildProcess;
  readonly #ended: Promise<number | string>;

  private constructor(root: string, image: Image, child: ChildProcess, url: string) {
    this.#root = root;
    this.#image = image;
    this.#child = child;
    this.#ended = endOf(child);
    this.url = url;
  }

  /** Resolves once it serves. @throws Error where it ends before */
  static async start(root: string, image: Image): Promise<Container> {
    const mounts = [
      'mount --bind "$0" "$0"',
      'mount --bind "$0$1" "$0$1"',
      'mount --rbind /proc "$0/proc"',
      'mount -o remount,bind,ro "$0"',
      "shift",
      'exec chroot "$@"',
    ].join(" && ");
    const own = {
      ...{ DELTAFOLD_HOST: "127.0.0.1", DELTAFOLD_PORT: "0" },
      // Shorter than a long reply of nano takes.
      DELTAFOLD_DRAIN_DELAY_SECONDS: "1",
    };
    // Here tini isn't process 1, which it would warn of.
    const env = { ...image.env, ...own, TINI_SUBREAPER: "1" };
    const inside = [`--userspec=${image.user}`, root, ...enved(env), ...image.command];
    const args = ["--mount", "sh", "-c", mounts, root, image.volume, ...inside];
    const child = spawn("unshare", args, { stdio: ["ignore", "pipe", "inherit"] });
    const signal = AbortSignal.timeout(startSeconds * 1000);
    const said = once(child.stdout!.setEncoding("utf8"), "data", { signal });
    const ended = endOf(child).then((how) => {
      throw new Error(`The container ended with ${how}.`);
    });
    try {
      const [line] = await Promise.race([said, ended]);
      return new Container(root, image, child, String(line).trim());
    } catch (error) {
      child.kill();
      throw error;
    }
  }

  /** Of its first process, in its own words. */
  get user(): string {
    const status = readFileSync(`/proc/${this.#child.pid}/status`, "utf8");
    const id = (name: string) => new RegExp(`^${name}:\\t(\\d+)`, "m").exec(status)?.[1];
    return `${id("Uid")}:${id("Gid")}`;
  }

  /** Runs a command in it. @param user UID:GID, the image's unless given */
  run(
    command: readonly string[],
    user: string = this.#image.user,
  ): { readonly status: number | null; readonly stdout: string; readonly stderr: string } {
    const env = { ...this.#image.env, DELTAFOLD_PORT: new URL(this.url).port };
    const chroot = ["chroot", `--userspec=${user}`, this.#root, ...enved(env), ...command];
    const args = [`--target=${this.#child.pid}`, "--mount", ...chroot];
    return spawnSync("nsenter", args, { encoding: "utf8" });
  }

  /** Sends SIGTERM, and resolves with its exit code, or the signal that ended it. */
  async stop(): Promise<number | string> {
    this.#child.kill();
    return await this.#ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

const enved = (env: Readonly<Record<string, string>>): string[] => [
  ...["/usr/bin/env", "-i", path],
  ...Object.entries(env).map(([name, value]) => `${name}=${value}`),
];

const endOf = (child: ChildProcess): Promise<number | string> =>
  once(child, "close").then(([code, signal]) => code ?? signal);
