import { lstat, mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { findCached } from "./find-node.ts";
import { faultsOf, HubBench, modelFiles, neededPaths, shards, someBytes } from "./hub.cases.ts";
import type { HubName } from "./names.ts";
import { removeModel } from "./remove-node.ts";
import { scanCache } from "./scan-node.ts";
import { filesBelow } from "./snapshot-files-node.ts";

let bench: HubBench;
beforeEach(async () => {
  bench = await HubBench.open();
});
afterEach(() => bench[Symbol.asyncDispose]());

const name = { repo: "org/model", revision: null };
const root = () => join(bench.cache, "models--org--model");
const remove = (which: HubName) => removeModel(bench.hub(), which, bench.never, async () => true);

async function bytesBelow(folder: string): Promise<number> {
  let bytes = 0;
  for (const path of await filesBelow(folder)) bytes += (await lstat(path)).size;
  return bytes;
}

/** Two commits that share all but a shard. */
async function pullTwo() {
  const files = modelFiles();
  const later = new Map(files).set(shards[1]!, someBytes(70_000, 9));
  const commit = bench.server.put(name.repo, files);
  await bench.pull(name);
  bench.server.put(name.repo, files, "v1");
  await bench.pull({ ...name, revision: "v1" });
  bench.server.put(name.repo, later);
  await bench.pull(name);
  return { files, later, commit };
}

describe("rm", () => {
  it("takes all of a model away, and nothing else", async () => {
    await pullTwo();
    bench.server.put("org/other", modelFiles());
    await bench.pull({ repo: "org/other", revision: null });
    await writeFile(join(root(), "blobs", "abc.12345678.incomplete"), "of another program");
    const before = await bytesBelow(bench.cache);
    const bytes = await remove(name);
    expect(before - (await bytesBelow(bench.cache))).toBe(bytes);
    expect((await readdir(bench.cache)).sort()).toEqual([".locks", "models--org--other"]);
    expect(await remove(name)).toBeNull();
  });

  it("takes of a revision what no other has", async () => {
    const { later } = await pullTwo();
    const before = await bytesBelow(root());
    const bytes = await remove({ ...name, revision: "v1" });
    expect(before - (await bytesBelow(root()))).toBe(bytes);
    expect(await readdir(join(root(), "refs"))).toEqual(["main"]);
    expect((await readdir(join(root(), "blobs"))).length).toBe(neededPaths.length);
    expect(await findCached(bench.hub(), name)).not.toBeNull();
    expect(await findCached(bench.hub(), { ...name, revision: "v1" })).toBeNull();
    expect(await faultsOf(bench.hub(), name.repo, [later])).toEqual([]);
    expect(await remove({ ...name, revision: "v1" })).toBeNull();
    await remove({ ...name, revision: "main" });
    expect(await readdir(bench.cache)).toEqual([".locks"]);
  });

  it("takes nothing that is not confirmed", async () => {
    bench.server.put(name.repo, modelFiles());
    const folder = await bench.pull(name);
    const asked: number[] = [];
    const confirm = async (bytes: number) => asked.push(bytes) < 0;
    expect(await removeModel(bench.hub(), name, bench.never, confirm)).toBeNull();
    expect(asked).toEqual([await bytesBelow(root())]);
    expect(await findCached(bench.hub(), name)).toBe(folder);
  });

  it("follows no link that leads elsewhere", async () => {
    const { commit } = await pullTwo();
    const outside = join(bench.cache, "outside");
    await writeFile(outside, "kept");
    await symlink(outside, join(root(), "snapshots", commit, "link"));
    await remove({ ...name, revision: commit });
    await remove(name);
    expect(await readFile(outside, "utf8")).toBe("kept");
  });
});

describe("list", () => {
  it("finds every commit, with the revisions that it is", async () => {
    const { commit } = await pullTwo();
    bench.server.put("a/second", modelFiles());
    const folder = await bench.pull({ repo: "a/second", revision: null });
    await mkdir(join(bench.cache, "datasets--org--data/snapshots"), { recursive: true });
    await mkdir(join(bench.cache, "models--gpt2/snapshots"), { recursive: true });
    const [second, model, ...more] = await scanCache(bench.hub());
    expect(more).toEqual([]);
    const bytes = neededPaths.reduce((sum, path) => sum + modelFiles().get(path)!.length, 0);
    const snapshot = { folder, bytes, revisions: ["main"], commit: folder.slice(-40) };
    expect(second).toEqual({ repo: "a/second", begunBytes: 0, snapshots: [snapshot] });
    const revisions = new Map(model?.snapshots.map((each) => [each.commit, each.revisions]));
    expect(revisions.get(commit)).toEqual(["v1"]);
    expect([...revisions.values()].flat().sort()).toEqual(["main", "v1"]);
  });

  it("counts what was begun, and not what somebody may be at", async () => {
    const files = modelFiles();
    bench.server.put(name.repo, files);
    bench.server.fault(shards[0]!, { stallAt: 150_000 });
    const controller = new AbortController();
    bench.server.once("stalled", () => controller.abort(new Error("enough")));
    await expect(bench.pull(name, bench.hub(), controller.signal)).rejects.toThrow("enough");
    const blobs = join(root(), "blobs");
    const parts = (await readdir(blobs)).filter((each) => each.endsWith(".incomplete"));
    const sizes = await Promise.all(
      parts.map(async (each) => (await lstat(join(blobs, each))).size),
    );
    await writeFile(join(blobs, "abc.deltafold-00000000-1-00000000.incomplete"), "elsewhere");
    await writeFile(join(blobs, "abc.12345678.incomplete"), "of another program");
    const [model] = await scanCache(bench.hub());
    expect(parts.length).toBeGreaterThan(0);
    expect(model?.begunBytes).toBe(sizes.reduce((sum, size) => sum + size, 0));
  });

  it("is empty where there is no cache", async () => {
    expect(await scanCache(bench.hub({ cache: join(bench.cache, "none") }))).toEqual([]);
  });
});
