import { once } from "node:events";
import { readdir, readFile, readlink, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { findCached } from "./find-node.ts";
import {
  faultsOf,
  HubBench,
  modelFiles,
  neededPaths,
  shards,
  someBytes,
  text,
} from "./hub.cases.ts";
import { partBytes } from "./parts-node.ts";
import { Pull } from "./pull-node.ts";
import { blobName } from "./test-hub.cases.ts";

let bench: HubBench;
beforeEach(async () => {
  bench = await HubBench.open();
});
afterEach(() => bench[Symbol.asyncDispose]());

const name = { repo: "org/model", revision: null };

describe("pull", () => {
  it("makes blobs, a snapshot and a ref, of the files that are needed", async () => {
    const files = modelFiles();
    const commit = bench.server.put(name.repo, files);
    const folder = await bench.pull(name);
    const root = join(bench.cache, "models--org--model");
    expect(folder).toBe(join(root, "snapshots", commit));
    expect((await readdir(folder)).sort()).toEqual(neededPaths);
    for (const path of neededPaths) {
      expect(await readlink(join(folder, path))).toBe(
        `../../blobs/${blobName(path, files.get(path)!)}`,
      );
      expect((await readFile(join(folder, path))).compare(files.get(path)!)).toBe(0);
    }
    expect(await readFile(join(root, "refs/main"), "utf8")).toBe(commit);
    expect((await readdir(join(root, "blobs"))).length).toBe(neededPaths.length);
    expect(await readdir(join(bench.cache, ".locks/models--org--model"))).toEqual([]);
    expect(await findCached(bench.hub(), name)).toBe(folder);
  });

  it("says before what is to come, and as it comes what is there", async () => {
    const files = modelFiles();
    bench.server.put(name.repo, files);
    await using pull = await Pull.open(bench.hub(), name, bench.never);
    const sizes = neededPaths.map((path) => files.get(path)!.length);
    expect(pull.totalBytes).toBe(sizes.reduce((sum, size) => sum + size, 0));
    const early =
      files.get("config.json")!.length + files.get("model.safetensors.index.json")!.length;
    expect(pull.totalBytes - pull.missingBytes).toBe(early);
    expect(pull.freeBytes).toBeGreaterThan(0);
    const there: number[] = [];
    await pull.run({ onBytes: (bytes) => there.push(bytes), onFault() {} });
    expect(there).toEqual([...there].sort((a, b) => a - b));
    expect(there.at(-1)).toBe(pull.totalBytes);
  });

  it("asks for nothing that is there, and for what other commits lack", async () => {
    const files = modelFiles();
    bench.server.put(name.repo, files);
    await bench.pull(name);
    bench.server.requests.length = 0;
    await bench.pull(name);
    expect(bench.server.requests.map(({ path }) => path)).toEqual([
      "/api/models/org/model/revision/main",
    ]);
    const newer = new Map(files).set(shards[1]!, someBytes(70_000, 9));
    const commit = bench.server.put(name.repo, newer);
    bench.server.requests.length = 0;
    const folder = await bench.pull(name);
    expect(bench.server.requests.map(({ at, path }) => `${at} ${path}`)).toEqual([
      "hub /api/models/org/model/revision/main",
      `hub /org/model/resolve/${commit}/${shards[1]}`,
      `store /org/model/resolve/${commit}/${shards[1]}`,
    ]);
    expect(await faultsOf(bench.hub(), name.repo, [files, newer])).toEqual([]);
    expect((await readdir(folder)).sort()).toEqual(neededPaths);
  });

  it("pulls branches, tags and commits, each under its name", async () => {
    const [files, tagged] = [modelFiles(1), modelFiles(20)];
    const commit = bench.server.put(name.repo, files);
    const other = bench.server.put(name.repo, tagged, "refs/pr/1");
    const pr = { ...name, revision: "refs/pr/1" };
    const folder = await bench.pull(pr);
    expect(await readFile(join(bench.cache, "models--org--model/refs/refs/pr/1"), "utf8")).toBe(
      other,
    );
    expect(await findCached(bench.hub(), pr)).toBe(folder);
    expect(await findCached(bench.hub(), name)).toBeNull();
    const exact = { ...name, revision: commit };
    expect(await bench.pull(exact)).toContain(commit);
    expect(await findCached(bench.hub(), exact)).toContain(commit);
    expect(await readdir(join(bench.cache, "models--org--model/refs"))).toEqual(["refs"]);
    expect(await faultsOf(bench.hub(), name.repo, [files, tagged])).toEqual([]);
  });

  it("keeps the earlier commit until the later one is whole", async () => {
    const [files, newer] = [modelFiles(1), modelFiles(30)];
    bench.server.put(name.repo, files);
    const folder = await bench.pull(name);
    bench.server.put(name.repo, newer);
    bench.server.fault(shards[0]!, { status: 418, atHub: true });
    await expect(bench.pull(name)).rejects.toThrow("refuses org/model with status 418");
    expect(await findCached(bench.hub(), name)).toBe(folder);
    expect(await bench.pull(name)).not.toBe(folder);
    expect(await findCached(bench.hub(), name)).not.toBe(folder);
  });

  it("takes a drafter without a tokenizer, of one weight file", async () => {
    const config = text({ architectures: ["DFlash2DraftModel"] });
    const files = new Map([
      ["config.json", config],
      ["model.safetensors", someBytes(1000, 1)],
      ["tokenizer.json", someBytes(10, 2)],
    ]);
    bench.server.put("z-lab/drafter", files);
    const folder = await bench.pull({ repo: "z-lab/drafter", revision: null });
    expect((await readdir(folder)).sort()).toEqual(["config.json", "model.safetensors"]);
  });

  it.each([
    ["config.json", /org\/model has no config\.json, so it is no checkpoint/],
    ["tokenizer.json", /org\/model has no tokenizer\.json/],
    [shards[1]!, /org\/model has no model-00002-of-00002\.safetensors/],
  ])("refuses a model without %s before anything large comes", async (path, why) => {
    const files = modelFiles();
    files.delete(path);
    bench.server.put(name.repo, files);
    await expect(bench.pull(name)).rejects.toThrow(why);
    expect(bench.server.requests.some(({ at }) => at === "store")).toBe(false);
  });

  it("makes files where there are no links", async () => {
    const [files, newer] = [modelFiles(1), modelFiles(1).set("config.json", text({ a: 1 }))];
    bench.server.put(name.repo, files);
    const hub = bench.hub({ symlinks: false });
    const folder = await bench.pull(name, hub);
    for (const path of neededPaths) expect((await stat(join(folder, path))).isFile()).toBe(true);
    expect(await readdir(hub.cacheOf(name.repo).blobs)).toEqual([]);
    bench.server.put(name.repo, newer);
    const later = await bench.pull(name, hub);
    expect(await findCached(hub, name)).toBe(later);
    expect(await faultsOf(hub, name.repo, [files, newer])).toEqual([]);
  });

  it("copies a blob that is there into a snapshot without links", async () => {
    const [files, newer] = [modelFiles(1), modelFiles(1).set("README.md", text("Another."))];
    bench.server.put(name.repo, files);
    await bench.pull(name);
    bench.server.put(name.repo, newer);
    const hub = bench.hub({ symlinks: false });
    await bench.pull(name, hub);
    const blobs = await readdir(hub.cacheOf(name.repo).blobs);
    expect(blobs.filter((each) => each.endsWith(".incomplete"))).toEqual([]);
    expect(blobs.length).toBe(neededPaths.length);
    expect(await faultsOf(hub, name.repo, [files, newer])).toEqual([]);
  });

  it("makes a blob anew whose length is wrong", async () => {
    const files = modelFiles();
    bench.server.put(name.repo, files);
    const folder = await bench.pull(name);
    await writeFile(join(folder, shards[0]!), "cut");
    await bench.pull(name);
    expect(await faultsOf(bench.hub(), name.repo, [files])).toEqual([]);
  });

  it("pulls four files at once, and goes on with all of them", async () => {
    const names = Array.from({ length: 9 }, (_, index) => `shard-${index}.safetensors`);
    const files = modelFiles();
    files.set("model.safetensors.index.json", text({ weight_map: { ...names } }));
    for (const [index, path] of names.entries()) {
      files.set(path, someBytes(300_000, index));
      if (index < 4) bench.server.fault(path, { stallAt: 200_000 });
    }
    bench.server.put(name.repo, files);
    const controller = new AbortController();
    const stopped = bench.pull(name, bench.hub(), controller.signal);
    for (let stalled = 0; stalled < 4; stalled++) await once(bench.server, "stalled");
    controller.abort(new Error("that will do"));
    await expect(stopped).rejects.toThrow("that will do");
    const asked = () => bench.server.requests.filter(({ path }) => path.includes("/shard-"));
    const stores = () => asked().filter(({ at }) => at === "store");
    expect(asked().length).toBe(8);
    expect(stores().length).toBe(4);
    expect(await findCached(bench.hub(), name)).toBeNull();
    expect(await readdir(join(bench.cache, ".locks/models--org--model"))).toEqual([]);
    const begun = await partBytes(bench.hub().cacheOf(name.repo).blobs);
    expect(begun.size).toBe(4);
    await bench.pull(name);
    const ranges = [...begun.values()].flatMap((bytes) => (bytes > 0 ? `bytes=${bytes}-` : []));
    expect(
      stores()
        .slice(4)
        .flatMap(({ range }) => range ?? [])
        .sort(),
    ).toEqual(ranges.sort());
    expect(await faultsOf(bench.hub(), name.repo, [files])).toEqual([]);
  });

  it("asks nothing offline", async () => {
    bench.server.put(name.repo, modelFiles());
    const folder = await bench.pull(name);
    const hub = bench.hub({ offline: true });
    bench.server.requests.length = 0;
    await expect(bench.pull(name, hub)).rejects.toThrow(
      "org/model can't be pulled: HF_HUB_OFFLINE",
    );
    expect(await findCached(hub, name)).toBe(folder);
    expect(bench.server.requests).toEqual([]);
  });
});
