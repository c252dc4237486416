import { expect, test } from "vitest";
import { MemoryDirectory } from "./directory.cases.ts";
import type { HttpFile } from "./http.ts";
import { openStore } from "./opfs.ts";

const file: HttpFile = { url: "https://host/file", size: 100, version: '"a"', ranges: true };
const block = Uint8Array.from({ length: 100 }, (_, at) => at);

async function stored(): Promise<MemoryDirectory> {
  const cache = new MemoryDirectory();
  await (await openStore(cache.handle, file))!.put(0, block);
  return cache;
}

async function read(cache: MemoryDirectory, changes: Partial<HttpFile> = {}) {
  const store = await openStore(cache.handle, { ...file, ...changes });
  return await store!.get(0, block.length);
}

test("gives back what was put", async () => {
  const cache = await stored();
  expect(await read(cache)).toEqual(block);
  const store = await openStore(cache.handle, file);
  expect(await store!.get(1, block.length)).toBeNull();
});

test.each<[string, (bytes: Uint8Array) => Uint8Array]>([
  ["cut off", (bytes) => bytes.subarray(0, -1)],
  ["empty", () => new Uint8Array()],
  ["longer", (bytes) => Buffer.concat([bytes, bytes])],
  ["changed in its bytes", (bytes) => bytes.with(17, 99)],
  ["changed in its digest", (bytes) => bytes.with(120, (bytes[120]! + 1) % 256)],
  ["zeros", (bytes) => new Uint8Array(bytes.length)],
])("doesn't give a block that is %s, and takes it anew", async (_, damage) => {
  const cache = await stored();
  const [[path, bytes] = ["", block]] = cache.files();
  const [url, version, name] = path.split("/");
  const folder = await (await cache.getDirectoryHandle(url!)).getDirectoryHandle(version!);
  folder.entries.set(name!, damage(Uint8Array.from(bytes)));
  expect(await read(cache)).toBeNull();
  await (await openStore(cache.handle, file))!.put(0, block);
  expect(await read(cache)).toEqual(block);
});

test.each<Partial<HttpFile>>([{ version: '"b"' }, { size: 101 }])(
  "forgets a file that has changed: %o",
  async (changes) => {
    const cache = await stored();
    expect(await read(cache, changes)).toBeNull();
    expect(cache.files().size).toBe(0);
    expect(await read(cache)).toBeNull();
  },
);

test("keeps files of other addresses apart", async () => {
  const cache = await stored();
  expect(await read(cache, { url: "https://host/other" })).toBeNull();
  expect(await read(cache)).toEqual(block);
});

test("stops trying once the quota is used up", async () => {
  const cache = new MemoryDirectory();
  cache.filesLeft = 1;
  const store = (await openStore(cache.handle, file))!;
  for (const index of [0, 1, 2]) await store.put(index, block);
  // The one for which there was no room is there, and empty.
  const sizes = [...cache.files()].map(([path, { length }]) => [path.at(-1), length]);
  expect(sizes).toEqual([
    ["0", block.length + 32],
    ["1", 0],
  ]);
  expect(await store.get(0, block.length)).toEqual(block);
  expect(await store.get(1, block.length)).toBeNull();
});

test("gives up a write that failed, and goes on with the next block", async () => {
  const cache = await stored();
  const store = (await openStore(cache.handle, file))!;
  const [url] = cache.entries.values();
  const [directory] = (url as MemoryDirectory).entries.values();
  const blocks = directory as MemoryDirectory;
  for (const index of [0, 1]) {
    blocks.writeFault = new Error("busy");
    await store.put(index, block);
    expect(blocks.writing).toBe(0);
  }
  expect(await store.get(0, block.length)).toEqual(block);
  expect(await store.get(1, block.length)).toBeNull();
  await store.put(1, block);
  expect(await store.get(1, block.length)).toEqual(block);
});
