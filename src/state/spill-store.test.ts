import { describe, expect, it } from "vitest";
import { MemorySpillFiles } from "./memory-spill-files.cases.ts";
import { spillBytes } from "./spill-file.ts";
import { bitsOf, sampleEntry, sampleIdentity } from "./spill-samples.cases.ts";
import { ample, spillStoreCases } from "./spill-store.cases.ts";
import { SpillStore } from "./spill-store.ts";

describe("in memory", () => spillStoreCases(() => new MemorySpillFiles()));

it("keeps the disk as free as asked, where what goes makes room too", async () => {
  const entries = [1, 2, 3].map((id) => sampleEntry([id, id]));
  const maxBytes = spillBytes(entries[0]!, sampleIdentity);
  const files = new MemorySpillFiles();
  const options = { ...ample, maxBytes, minFreeBytes: maxBytes };
  const store = await SpillStore.open(files, sampleIdentity, options);
  const write = ({ ids, context, snapshot }: (typeof entries)[0]) =>
    store.write(ids, context, snapshot);
  files.capacity = 2 * maxBytes;
  expect(await write(entries[0]!)).toBe(true);
  expect(await write(entries[1]!)).toBe(true);
  files.capacity--;
  expect(await write(entries[2]!)).toBe(false);
  expect([store.longest([1, 1, 0], true), store.longest([2, 2, 0], true)?.rows]).toEqual([null, 2]);
});

describe("a disk that fails", () => {
  const [ab, abc] = [sampleEntry([1, 2]), sampleEntry([1, 2, 3])];
  const [abBytes, abcBytes] = [ab, abc].map((entry) => spillBytes(entry, sampleIdentity)) as [
    number,
    number,
  ];

  /** A store that holds the shorter entry, and what it warned of. */
  async function opened(maxBytes: number = ample.maxBytes) {
    const files = new MemorySpillFiles();
    const warnings: string[] = [];
    const options = {
      ...ample,
      maxBytes,
      onWarning: (message: string) => void warnings.push(message),
    };
    const open = () => SpillStore.open(files, sampleIdentity, options);
    const store = await open();
    const write = ({ ids, context, snapshot }: typeof ab) => store.write(ids, context, snapshot);
    expect(await write(ab)).toBe(true);
    const { name } = store.longest(abc.ids, true)!;
    return { files, warnings, open, store, write, name };
  }

  it.each(["write", "freeBytes"] as const)("makes no entry: %s", async (call) => {
    const { files, warnings, store, write } = await opened();
    files.failing.add(call);
    expect(await write(abc)).toBe(false);
    expect(await write(abc)).toBe(false);
    expect(warnings).toEqual([`The cache on disk fails: ${call} failed`]);
    expect([store.count, store.bytes]).toEqual([1, abBytes]);
    files.failing.clear();
    expect(await write(abc)).toBe(true);
    expect([store.count, store.bytes]).toEqual([2, abBytes + abcBytes]);
  });

  it("makes no room: what can't be removed stays, and what should be written does not", async () => {
    const { files, warnings, store, write, name } = await opened(abcBytes);
    files.failing.add("remove");
    expect(await write(abc)).toBe(false);
    expect(warnings).toEqual(["The cache on disk fails: remove failed"]);
    expect(bitsOf(await store.read(name))).toEqual(bitsOf(ab));
    files.failing.clear();
    expect(await write(abc)).toBe(true);
    expect([...files.files.values()].map(({ length }) => length)).toEqual([abcBytes]);
  });

  it("that has no space left is the same", async () => {
    const { files, warnings, store, write } = await opened();
    files.capacity = abBytes + abcBytes - 1;
    // More free than there is, as where another process is quicker.
    files.freeBytes = async () => abcBytes;
    expect(await write(abc)).toBe(false);
    expect([store.count, warnings.length]).toEqual([1, 1]);
  });

  it.each([0, 1, 15, 16, 200, abcBytes - 33, abcBytes - 1])(
    "leaves a torn file of %s bytes, which goes at the next open",
    async (tornAt) => {
      const { files, warnings, open, write } = await opened();
      files.tornAt = tornAt;
      expect(await write(abc)).toBe(false);
      expect(warnings).toHaveLength(1);
      expect(files.files.size).toBe(2);
      const store = await open();
      expect([
        store.count,
        files.files.size,
        files.files.get([...files.files.keys()][0]!)!.length,
      ]).toEqual([1, 1, abBytes]);
    },
  );

  it("misses what can't be read, without a throw, and finds it at the next open", async () => {
    const { files, warnings, open, store, name } = await opened();
    files.failing.add("read");
    expect(await store.read(name)).toBeNull();
    expect(store.count).toBe(0);
    expect((await open()).count).toBe(0);
    expect(warnings[0]).toBe("The cache on disk fails: read failed");
    files.failing.clear();
    expect(bitsOf(await (await open()).read(name))).toEqual(bitsOf(ab));
  });

  it("removes what is read with a flipped bit", async () => {
    for (let bit = 0; bit < 8 * abBytes; bit += 101) {
      const { files, warnings, store, name } = await opened();
      files.flippedBit = bit;
      expect(await store.read(name)).toBeNull();
      expect([store.count, files.files.size, warnings.length]).toEqual([0, 0, 0]);
    }
  });

  it("still gives what it can't mark as used", async () => {
    const { files, warnings, store, name } = await opened();
    files.failing.add("touch");
    expect(bitsOf(await store.read(name))).toEqual(bitsOf(ab));
    expect(warnings).toEqual(["The cache on disk fails: touch failed"]);
  });

  it("is an empty store where it can't be listed", async () => {
    const { files, warnings, open } = await opened();
    files.failing.add("list");
    expect((await open()).count).toBe(0);
    expect(warnings).toEqual(["The cache on disk fails: list failed"]);
    expect(files.files.size).toBe(1);
  });

  it("is left alone after a bug: a snapshot of other rows", async () => {
    const { store, write } = await opened();
    await expect(store.write([1], true, abc.snapshot)).rejects.toThrow(/3 rows for 1 tokens/);
    expect(await write(abc)).toBe(true);
  });
});
