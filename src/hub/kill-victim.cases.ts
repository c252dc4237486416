/**
 * A process that pulls a model, and is ended by SIGKILL at one of its calls to the file system. It is
 * started with a `KillTask` as JSON; without a kill it prints how many such calls there were.
 */
import { writeSync } from "node:fs";
import fs from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { fileURLToPath } from "node:url";
import { Hub } from "./hub-node.ts";
import { Pull } from "./pull-node.ts";
import { hubTime } from "./time-node.ts";

/** Before a call, when half of what it writes is written, or when it is done and nobody knows. */
export type Moment = "before" | "within" | "after";

export interface KillTask {
  readonly endpoint: string;
  readonly cache: string;
  readonly repo: string;
  readonly symlinks: boolean;
  readonly kill: { readonly call: number; readonly moment: Moment } | null;
}

type Call = (...args: unknown[]) => Promise<unknown>;
type Calls = Record<string, Call>;

/** What changes files, or makes changes last. */
const folderCalls = ["copyFile", "mkdir", "open", "rename", "rm", "symlink", "utimes", "writeFile"];
const fileCalls = ["sync", "truncate", "write"];

const die = () => process.kill(process.pid, "SIGKILL");

/** Counts calls, and ends the process at one. */
async function watchCalls(kill: KillTask["kill"]): Promise<() => number> {
  let calls = 0;
  const watch = (owner: Calls, name: string) => {
    const call = owner[name]!;
    owner[name] = async function watched(this: unknown, ...args: unknown[]) {
      calls++;
      if (calls !== kill?.call) return await call.apply(this, args);
      const done = kill.moment === "after" ? call.apply(this, args) : null;
      // It may be one that fails, as where something isn't there yet.
      await (kill.moment === "within" ? half(call, name, this, args) : done)?.catch(() => {});
      return die();
    };
  };
  const handle = await fs.open(process.execPath);
  const files: Calls = Object.getPrototypeOf(handle);
  await handle.close();
  for (const name of fileCalls) watch(files, name);
  for (const name of folderCalls) watch(fs as unknown as Calls, name);
  syncBuiltinESMExports();
  return () => calls;
}

/** Does half of a call that can be done by halves. */
async function half(call: Call, name: string, self: unknown, args: unknown[]): Promise<void> {
  if (name === "write") {
    const [bytes, offset, length, position] = args as [Uint8Array, number, number, number];
    await call.apply(self, [bytes, offset, Math.floor(length / 2), position]);
  } else if (name === "writeFile") {
    const [path, text, options] = args as [string, string, object?];
    await call.apply(self, [path, text.slice(0, text.length / 2), options]);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const task: KillTask = JSON.parse(process.argv[2]!);
  const calls = await watchCalls(task.kill);
  const { cache, symlinks, repo } = task;
  const endpoint = new URL(task.endpoint);
  const hub = new Hub({ cache, endpoint, token: null, offline: false, symlinks }, hubTime);
  const { signal } = new AbortController();
  await using pull = await Pull.open(hub, { repo, revision: null }, signal);
  await pull.run({ onBytes() {}, onFault() {} });
  writeSync(1, String(calls()));
}
