import { spawnSync } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Clock, systemClock } from "../clock.ts";
import { spillFiles, spillFolder } from "./spill-files-node.ts";
import { bitsOf, sampleEntry, sampleIdentity } from "./spill-samples.cases.ts";
import { ample, spillStoreCases } from "./spill-store.cases.ts";
import { SpillStore } from "./spill-store.ts";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "deltafold-spill-"));
});
afterEach(() => {
  rmSync(root, { recursive: true });
});

/** Each call a second later, so that uses are in order. */
function ticking(): Clock {
  let seconds = 1000;
  return { nowMs: () => 0, unixSeconds: () => ++seconds };
}

let folders = 0;
describe("in a folder", () =>
  spillStoreCases(() => spillFiles(join(root, "made", String(folders++)), ticking())));

const name = "0123456789abcdef0123456789abcdef";
const bytes = (text: string) => new TextEncoder().encode(text);

describe("files", () => {
  it("are whole or in part what was written last, or null", async () => {
    const files = spillFiles(root);
    await files.write(name, [bytes("first and longer")]);
    await files.write(name, [bytes("sec"), bytes(""), bytes("ond")]);
    expect(await files.read(name)).toEqual(bytes("second"));
    expect(await files.read(name, 3)).toEqual(bytes("sec"));
    expect(await files.read(name, 0)).toEqual(bytes(""));
    expect(await files.list()).toMatchObject([{ name, bytes: 6 }]);
    await files.remove(name);
    expect(await files.read(name)).toBeNull();
    await files.touch(name);
    await files.remove(name);
  });

  it.skipIf(process.platform === "win32")("are the user's alone", async () => {
    const folder = join(root, "a", "b");
    await spillFiles(folder).write(name, [bytes("x")]);
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    expect(statSync(join(folder, `${name}.spill`)).mode & 0o777).toBe(0o600);
  });

  it("leave nothing where the write fails", async () => {
    const parts = function* () {
      yield bytes("half");
      throw new Error("no more");
    };
    await expect(spillFiles(root).write(name, parts())).rejects.toThrow("no more");
    expect(readdirSync(root)).toEqual([]);
  });

  it("are written again into a folder that was removed", async () => {
    const folder = join(root, "folder");
    const store = await SpillStore.open(spillFiles(folder), sampleIdentity, ample);
    rmSync(folder, { recursive: true });
    const { ids, context, snapshot } = sampleEntry([1, 2]);
    expect(await store.write(ids, context, snapshot)).toBe(true);
  });

  it("that can't be made are reported once", async () => {
    const folder = join(root, "file");
    writeFileSync(folder, "");
    const warnings: string[] = [];
    const onWarning = (message: string) => void warnings.push(message);
    const options = { ...ample, onWarning };
    const store = await SpillStore.open(spillFiles(folder), sampleIdentity, options);
    const { ids, context, snapshot } = sampleEntry([1, 2]);
    expect(await store.write(ids, context, snapshot)).toBe(false);
    expect(warnings).toEqual([expect.stringMatching(/^The cache on disk fails: EEXIST/)]);
  });

  it("lie in a folder of their model and device", () => {
    const folder = spillFolder(sampleIdentity);
    expect(folder).toMatch(/deltafold.spill.[0-9a-f]{16}$/);
    expect(spillFolder({ ...sampleIdentity, build: "2", probe: "3" })).toBe(folder);
    expect(spillFolder({ ...sampleIdentity, model: "m2" })).not.toBe(folder);
    expect(spillFolder({ ...sampleIdentity, backend: "f16" })).not.toBe(folder);
  });
});

describe("what lies beside the files", () => {
  const part = (pid: number) => `${name}.spill.${pid}-00112233.part`;
  /** What is left after a store opened, of a file that was written to some seconds ago. */
  async function left(file: string, secondsAgo = 0): Promise<string[]> {
    const path = join(root, file);
    writeFileSync(path, "half");
    const then = systemClock.unixSeconds() - secondsAgo;
    utimesSync(path, then, then);
    await SpillStore.open(spillFiles(root), sampleIdentity, ample);
    return readdirSync(root);
  }
  const own = process.pid;

  it("goes: parts of processes that died, or of an earlier one with this id", async () => {
    const { pid } = spawnSync(process.execPath, ["--version"]);
    expect(await left(part(pid))).toEqual([]);
    expect(await left(part(2 ** 40))).toEqual([]);
    const before = Math.ceil(process.uptime()) + 5;
    expect(await left(part(own), before)).toEqual([]);
  });

  it("goes: parts older than an hour", async () => {
    for (const pid of [own, process.ppid]) expect(await left(part(pid), 3700)).toEqual([]);
  });

  it("stays: parts that living processes write", async () => {
    expect(await left(part(process.ppid), 3500)).toHaveLength(1);
    expect(await left(part(own))).toHaveLength(2);
  });

  it.each(["notes.txt", `${name}.spill.bak`, `x${name}.spill`, "x.part", "x.spill"])(
    "stays: what no store has written, %s",
    async (file) => {
      expect(await left(file, 1_000_000)).toEqual([file]);
    },
  );

  it("stays: a folder, whatever its name", async () => {
    mkdirSync(join(root, `${name}.spill`));
    expect(await left("x")).toHaveLength(2);
  });
});

describe("two stores over one folder", () => {
  it("write side by side, see each other's at the next open, and miss what the other removed", async () => {
    const open = () => SpillStore.open(spillFiles(root), sampleIdentity, ample);
    const stores = [await open(), await open()];
    const entries = Array.from({ length: 8 }, (_, id) => sampleEntry([id, 1]));
    const writes = entries.flatMap(({ ids, context, snapshot }) =>
      stores.map((store) => store.write(ids, context, snapshot)),
    );
    expect(new Set(await Promise.all(writes))).toEqual(new Set([true]));
    const third = await open();
    expect(readdirSync(root)).toHaveLength(8);
    for (const entry of entries) {
      const { name } = third.longest([...entry.ids, 0], true)!;
      expect(bitsOf(await third.read(name))).toEqual(bitsOf(entry));
    }
    const small = await SpillStore.open(spillFiles(root), sampleIdentity, {
      ...ample,
      maxBytes: 0,
    });
    expect([small.count, readdirSync(root).length]).toEqual([0, 0]);
    const { name } = third.longest([3, 1, 0], true)!;
    expect(await third.read(name)).toBeNull();
    expect(third.count).toBe(7);
  });
});
