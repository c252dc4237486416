import { spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { findCached } from "./find-node.ts";
import { faultsOf, HubBench, modelFiles, neededPaths, shards, someBytes } from "./hub.cases.ts";
import type { KillTask, Moment } from "./kill-victim.cases.ts";
import { Pull } from "./pull-node.ts";
import { filesBelow } from "./snapshot-files-node.ts";
import type { TestHub } from "./test-hub.cases.ts";

const victim = fileURLToPath(new URL("./kill-victim.cases.ts", import.meta.url));
const name = { repo: "org/model", revision: null };

/** What is in the cache when the pull begins that is killed. */
export const scenarios = ["empty", "older", "begun", "linkless"] as const;
export type Scenario = (typeof scenarios)[number];
export const moments: readonly Moment[] = ["before", "within", "after"];

export interface KillPoint {
  readonly scenario: Scenario;
  /** The call to the file system at which it is killed, from 1 on. */
  readonly call: number;
  readonly moment: Moment;
}

export const pointText = ({ scenario, call, moment }: KillPoint): string =>
  `${scenario} cache, ${moment} call ${call}`;

const older = modelFiles(1, 4_000_000);
/** Shares all but a shard and the config with the older. */
const newer = new Map(older)
  .set(shards[1]!, someBytes(2_000_000, 9))
  .set("config.json", new TextEncoder().encode('{"model_type": "qwen3_5_text", "new": true}'));

/** Kills pulls, and looks at what they leave. */
export class KillBench implements AsyncDisposable {
  readonly #bench: HubBench;
  /** A cache for each scenario, to be copied. */
  readonly #caches: string;

  private constructor(bench: HubBench, caches: string) {
    this.#bench = bench;
    this.#caches = caches;
  }

  static async open(): Promise<KillBench> {
    const caches = await mkdtemp(join(tmpdir(), "deltafold-kill-"));
    const bench = new KillBench(await HubBench.open(), caches);
    await bench.#prepare();
    return bench;
  }

  /** How many calls a pull makes that nobody kills. */
  async callsOf(scenario: Scenario): Promise<number> {
    const cache = await this.#copyOf(scenario);
    return Number((await this.#start(scenario, cache, null)).output);
  }

  /** Kills a pull, and returns what is wrong with what is left, or with the next pull. */
  async wrongAt({ scenario, call, moment }: KillPoint): Promise<string[]> {
    const cache = await this.#copyOf(scenario);
    const { signal, output } = await this.#start(scenario, cache, { call, moment });
    if (signal !== "SIGKILL") {
      // Files come in more pieces or in fewer: it ended before that call.
      if (Number(output) < call) return await this.wrongAt({ scenario, call: call - 1, moment });
      return [`it was not killed: ${output}`];
    }
    const hub = this.#bench.hub({ cache, symlinks: scenario !== "linkless" });
    const wrong = await faultsOf(hub, name.repo, [older, newer]);
    const found = await findCached(hub, name);
    if (found === null && scenario === "older") wrong.push("the older commit is gone");
    if (found !== null) wrong.push(...(await wrongIn(found, this.#bench.server)));
    {
      await using pull = await Pull.open(hub, name, this.#bench.never);
      const before = this.#bench.server.sent;
      await pull.run({ onBytes() {}, onFault() {} });
      const sent = this.#bench.server.sent - before;
      if (sent !== pull.missingBytes) {
        wrong.push(`${sent} bytes came, and ${pull.missingBytes} were missing`);
      }
      wrong.push(...(await wrongIn(pull.folder, this.#bench.server)));
    }
    wrong.push(...(await faultsOf(hub, name.repo, [older, newer])));
    const rest = (await filesBelow(cache)).filter((path) => /\.incomplete$|\.lock$/.test(path));
    await rm(cache, { recursive: true });
    return [...wrong, ...rest.map((path) => `${path} is left`)];
  }

  /** Lets two processes pull at once. @returns bytes that were sent of each file, over its length */
  async sharesOfTwo(): Promise<Map<string, number>> {
    const { server } = this.#bench;
    const before = server.requests.length;
    const cache = await this.#copyOf("empty");
    await Promise.all([1, 2].map(() => this.#start("empty", cache, null)));
    const shares = new Map(neededPaths.map((path) => [path, 0]));
    for (const { path, sent } of server.requests.slice(before)) {
      const file = neededPaths.find((each) => path.endsWith(`/${each}`));
      if (file) shares.set(file, shares.get(file)! + sent / newer.get(file)!.length);
    }
    return shares;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#bench[Symbol.asyncDispose]();
    await rm(this.#caches, { recursive: true });
  }

  async #prepare(): Promise<void> {
    const { server } = this.#bench;
    server.put(name.repo, older);
    await this.#bench.pull(name, this.#bench.hub({ cache: join(this.#caches, "older") }));
    server.put(name.repo, newer);
    // Half of a shard is there, and what comes before it.
    const begun = join(this.#caches, "begun");
    const calls = Number((await this.#start("begun", join(this.#caches, "all"), null)).output);
    await this.#start("begun", begun, { call: Math.ceil(calls / 2), moment: "within" });
  }

  async #copyOf(scenario: Scenario): Promise<string> {
    const cache = await mkdtemp(join(this.#bench.cache, "cache-"));
    const from = join(this.#caches, scenario);
    const exists = (await readdir(this.#caches)).includes(scenario);
    if (exists) await cp(from, cache, { recursive: true, verbatimSymlinks: true });
    return cache;
  }

  async #start(
    scenario: Scenario,
    cache: string,
    kill: KillTask["kill"],
  ): Promise<{ signal: string | null; output: string }> {
    const endpoint = this.#bench.server.url;
    const symlinks = scenario !== "linkless";
    const task: KillTask = { endpoint, cache, repo: name.repo, symlinks, kill };
    const child = spawn(process.execPath, [victim, JSON.stringify(task)]);
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (data: Buffer) => {
        output += data.toString();
      });
    }
    const [, signal] = await once(child, "close");
    return { signal, output };
  }
}

/** The needed files of its commit that a folder doesn't have, or has others in their place. */
async function wrongIn(folder: string, server: TestHub): Promise<string[]> {
  const files = server.filesOf(name.repo, basename(folder));
  const wrong: string[] = [];
  for (const path of neededPaths) {
    const bytes = await readFile(join(folder, path)).catch(() => null);
    if (bytes?.compare(files.get(path)!) !== 0) wrong.push(`${path} is not what it should be`);
  }
  return wrong;
}
