import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readFile, rm, stat, utimes, writeFile } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Alarms } from "../serve/alarms.cases.ts";
import type { HubTime } from "./client.ts";
import { stillTime } from "./hub.cases.ts";
import { FileLock } from "./lock-node.ts";

let folder = "";
let path = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "deltafold-lock-"));
  path = join(folder, ".locks", "a.lock");
});
afterEach(() => rm(folder, { recursive: true }));

const never = new AbortController().signal;
const hash = createHash("sha256").update(hostname()).digest("hex").slice(0, 8);
const tagOf = (pid: number, host = hash) => `deltafold-${host}-${pid}-00000000`;
const alive = process.ppid;

/** A process that has ended. */
const ended = (): number => spawnSync(process.execPath, ["--version"]).pid;

async function leave(tag: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, tag);
}

/** Takes the lock, and counts the looks; at the look `freeAt` its holder lets it go. */
async function take(freeAt: number, onWait: (process: number | null) => void = () => {}) {
  let looks = 0;
  const time: HubTime = {
    ...stillTime,
    wait: async () => {
      if (++looks === freeAt) await rm(path);
    },
  };
  await using _lock = await FileLock.take(path, time, never, onWait);
  return looks;
}

test("one has it, and the other waits", async () => {
  const first = await FileLock.take(path, stillTime, never, () => {});
  const order: string[] = [];
  const time: HubTime = {
    ...stillTime,
    async wait() {
      order.push("waits");
      if (order.length === 3) await first[Symbol.asyncDispose]();
    },
  };
  const waited: (number | null)[] = [];
  await using _second = await FileLock.take(path, time, never, (process) => waited.push(process));
  expect(order.length).toBe(3);
  expect(waited).toEqual([process.pid]);
});

test("what a process left that has ended is taken at once", async () => {
  await leave(tagOf(ended()));
  expect(await take(9)).toBe(0);
});

test("what an earlier process of this one's id left is taken at once", async () => {
  await leave(tagOf(process.pid));
  expect(await take(9)).toBe(0);
});

test("what nobody touches for a minute is taken, whoever has it", async () => {
  for (const tag of [tagOf(alive), tagOf(ended(), "ffffffff")]) {
    await leave(tag);
    expect(await take(1000)).toBe(120);
  }
});

test("what is touched is waited for", async () => {
  await leave(tagOf(alive));
  let seconds = 1000;
  const time: HubTime = {
    ...stillTime,
    async wait() {
      seconds++;
      if (seconds === 1500) await rm(path);
      // Every third look sees that it was touched.
      else if (seconds % 3 === 0) await utimes(path, seconds, seconds);
    },
  };
  const waited: (number | null)[] = [];
  await using _lock = await FileLock.take(path, time, never, (process) => waited.push(process));
  expect(seconds).toBe(1500);
  expect(waited).toEqual([alive]);
});

test("what has no holder's tag is taken at the next looks", async () => {
  await leave("");
  const waited: (number | null)[] = [];
  expect(await take(9, (process) => waited.push(process))).toBe(2);
  expect(waited).toEqual([null]);
});

test("its holder touches it, and takes nobody else's away", async () => {
  const alarms = new Alarms();
  const lock = await FileLock.take(path, { ...stillTime, setAlarm: alarms.set }, never, () => {});
  await utimes(path, 1000, 1000);
  alarms.pass(10_000);
  while ((await stat(path)).mtimeMs === 1_000_000) await new Promise(setImmediate);
  await leave(tagOf(alive));
  await lock[Symbol.asyncDispose]();
  expect(await readFile(path, "utf8")).toBe(tagOf(alive));
  expect(alarms.count).toBe(0);
});

test("who waits can be stopped", async () => {
  await leave(tagOf(alive));
  const controller = new AbortController();
  const taken = FileLock.take(path, stillTime, controller.signal, () =>
    controller.abort(new Error("enough")),
  );
  await expect(taken).rejects.toThrow("enough");
});
