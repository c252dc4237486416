import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { encodeSpill, spillBytes } from "./spill-file.ts";
import type { SpillFiles } from "./spill-files.ts";
import { bitsOf, sampleEntry, sampleIdentity } from "./spill-samples.cases.ts";
import { type SpillOptions, SpillStore } from "./spill-store.ts";

export const ample: Required<SpillOptions> = {
  maxBytes: 2 ** 40,
  minFreeBytes: 0,
  onWarning: (message) => expect.fail(message),
};

/** What a store promises over any place for files; `newFiles` makes an empty one. */
export function spillStoreCases(newFiles: () => SpillFiles): void {
  const [a, ab, abc] = [sampleEntry([1]), sampleEntry([1, 2]), sampleEntry([1, 2, 3])];
  const oneBytes = spillBytes(ab, sampleIdentity);
  const open = (files: SpillFiles, changes: object = {}) =>
    SpillStore.open(files, sampleIdentity, { ...ample, ...changes });
  const write = (store: SpillStore, { ids, context, snapshot }: typeof a) =>
    store.write(ids, context, snapshot);
  const found = (store: SpillStore, ids: readonly number[], needsContext = false) =>
    store.longest([...ids, 99], needsContext);
  const nameIn = (store: SpillStore, ids: readonly number[]) => found(store, ids)!.name;
  const there = (store: SpillStore, ids: readonly number[]) =>
    found(store, ids)?.rows === ids.length;

  describe("entries", () => {
    it("come back bit for bit, from an opened store too, and are counted", async () => {
      const files = newFiles();
      const first = await open(files);
      for (const entry of [ab, abc]) expect(await write(first, entry)).toBe(true);
      for (const store of [first, await open(files)]) {
        for (const entry of [ab, abc]) {
          expect(bitsOf(await store.read(nameIn(store, entry.ids)))).toEqual(bitsOf(entry));
        }
        expect(store.count).toBe(2);
        expect(store.bytes).toBe(oneBytes + spillBytes(abc, sampleIdentity));
      }
    });

    it("are found by the longest proper prefix of a prompt", async () => {
      const store = await open(newFiles());
      for (const entry of [abc, a, ab]) await write(store, entry);
      expect(store.longest([1, 2, 3, 4], false)?.rows).toBe(3);
      expect(store.longest([1, 2, 3], false)?.rows).toBe(2);
      expect(store.longest([1, 2, 4, 3], false)?.rows).toBe(2);
      expect(store.longest([1, 3], false)?.rows).toBe(1);
      for (const ids of [[1], [2, 1], []]) expect(store.longest(ids, false)).toBeNull();
    });

    it("with the drafter's context are told from those without", async () => {
      const store = await open(newFiles());
      const without = sampleEntry([1, 2], { context: false });
      await write(store, without);
      expect(found(store, [1, 2], true)).toBeNull();
      expect(bitsOf(await store.read(nameIn(store, [1, 2])))).toEqual(bitsOf(without));
      await write(store, ab);
      expect(bitsOf(await store.read(found(store, [1, 2], true)!.name))).toEqual(bitsOf(ab));
      expect(store.count).toBe(2);
    });

    it("lie there once, also when they are written together", async () => {
      const files = newFiles();
      const store = await open(files);
      const writes = [ab, ab, abc, ab].map((entry) => write(store, entry));
      expect(await Promise.all(writes)).toEqual([true, true, true, true]);
      expect(store.count).toBe(2);
      expect(await files.list()).toHaveLength(2);
    });

    it("of more tokens than are read at first are found when a store opens", async () => {
      const files = newFiles();
      const long = sampleEntry(Array.from({ length: 40_000 }, (_, row) => row % 1000));
      await write(await open(files), long);
      const store = await open(files);
      expect(bitsOf(await store.read(nameIn(store, long.ids)))).toEqual(bitsOf(long));
    });

    it("that another process removed are misses", async () => {
      const files = newFiles();
      const store = await open(files);
      await write(store, ab);
      const name = nameIn(store, ab.ids);
      await files.remove(name);
      expect(await store.read(name)).toBeNull();
      expect([store.count, store.bytes, found(store, ab.ids)]).toEqual([0, 0, null]);
      expect(await store.read(name)).toBeNull();
      expect(await write(store, ab)).toBe(true);
    });
  });

  describe("room", () => {
    it("is made by what was used least recently, now and after a restart", async () => {
      const files = newFiles();
      const maxBytes = 3 * oneBytes;
      const first = await open(files, { maxBytes });
      const pairs = [1, 2, 3, 4, 5, 6].map((id) => sampleEntry([id, id]));
      for (const entry of pairs.slice(0, 3)) await write(first, entry);
      await first.read(nameIn(first, [1, 1]));
      expect(await write(first, pairs[3]!)).toBe(true);
      const which = (store: SpillStore) => pairs.map(({ ids }) => there(store, ids));
      expect(which(first)).toEqual([true, false, true, true, false, false]);
      await write(first, pairs[2]!);
      const second = await open(files, { maxBytes });
      await write(second, pairs[4]!);
      expect(which(second)).toEqual([false, false, true, true, true, false]);
      await write(second, pairs[5]!);
      expect(which(second)).toEqual([false, false, true, false, true, true]);
      expect(second.bytes).toBe(maxBytes);
    });

    it("that was made smaller is kept to at the next open", async () => {
      const files = newFiles();
      const first = await open(files);
      for (const id of [1, 2, 3]) await write(first, sampleEntry([id, id]));
      const second = await open(files, { maxBytes: 2 * oneBytes });
      expect([1, 2, 3].map((id) => there(second, [id, id]))).toEqual([false, true, true]);
      expect(await files.list()).toHaveLength(2);
    });

    it("is not made for what is too large, or below what must stay free", async () => {
      const files = newFiles();
      const tight = await open(files, { maxBytes: oneBytes });
      await write(tight, ab);
      expect(await write(tight, abc)).toBe(false);
      const full = await open(files, { minFreeBytes: Number.MAX_SAFE_INTEGER });
      expect(await write(full, abc)).toBe(false);
      expect(there(full, ab.ids)).toBe(true);
      expect(await write(full, ab)).toBe(true);
    });
  });

  describe("files that are none of this store's", () => {
    it.each(["model", "backend", "build", "probe"])("go: another %s", async (key) => {
      const files = newFiles();
      const other = await SpillStore.open(files, { ...sampleIdentity, [key]: "other" }, ample);
      await write(other, ab);
      expect((await open(files)).count).toBe(0);
      expect(await files.list()).toEqual([]);
    });

    it("go: torn, no entry at all, or under another's name", async () => {
      const files = newFiles();
      const parts = [...encodeSpill(ab, sampleIdentity)];
      const whole = Buffer.concat(parts);
      const name = (digit: number) => String(digit).repeat(32);
      await files.write(name(1), [whole.subarray(0, -1)]);
      await files.write(name(2), [new TextEncoder().encode("hello")]);
      await files.write(name(3), []);
      await files.write(name(4), parts);
      const store = await open(files);
      expect(store.count).toBe(0);
      expect(await files.list()).toEqual([]);
    });

    it.each([
      ["a float", (bytes: Uint8Array) => bytes.length - 33],
      ["the checksum", (bytes: Uint8Array) => bytes.length - 1],
      ["the magic", () => 0],
    ])("go when they are read: a flipped bit in %s", async (_, at) => {
      const files = newFiles();
      const store = await open(files);
      await write(store, ab);
      await write(store, abc);
      const name = nameIn(store, ab.ids);
      const bytes = (await files.read(name))!.slice();
      bytes[at(bytes)]! ^= 4;
      await files.write(name, [bytes]);
      expect(await store.read(name)).toBeNull();
      expect(found(store, ab.ids)).toBeNull();
      expect(await files.read(name)).toBeNull();
      expect(bitsOf(await store.read(nameIn(store, abc.ids)))).toEqual(bitsOf(abc));
    });
  });

  it("does what a list of entries by last use does", async () => {
    const calls = fc.array(
      fc.record({
        call: fc.constantFrom("write", "read", "open"),
        ids: fc.array(fc.nat(1), { minLength: 1, maxLength: 4 }),
        context: fc.boolean(),
      }),
      { maxLength: 24 },
    );
    await fc.assert(
      fc.asyncProperty(calls, async (script) => {
        const files = newFiles();
        const maxBytes = 4 * oneBytes;
        let store = await open(files, { maxBytes });
        let list: (typeof a)[] = [];
        const bytes = () => list.reduce((sum, entry) => sum + spillBytes(entry, sampleIdentity), 0);
        const use = (entry: typeof a) => {
          const key = (of: typeof a) => `${of.ids} ${of.context}`;
          list = [...list.filter((other) => key(other) !== key(entry)), entry];
        };
        for (const { call, ids, context } of script) {
          if (call === "open") store = await open(files, { maxBytes });
          if (call === "write") {
            const entry = sampleEntry(ids, { context });
            use(entry);
            while (bytes() > maxBytes) list.shift();
            expect(await write(store, entry)).toBe(true);
          }
          const rows = list
            .filter((entry) => entry.context || !context)
            .filter((entry) => entry.ids.length < ids.length)
            .filter((entry) => entry.ids.every((id, row) => id === ids[row]))
            .map((entry) => entry.ids.length);
          const longest = store.longest(ids, context);
          expect(longest?.rows ?? 0).toBe(Math.max(0, ...rows));
          if (call === "read" && longest) {
            const back = (await store.read(longest.name))!;
            expect(bitsOf(back)).toEqual(bitsOf(sampleEntry(back.ids, back)));
            use(back);
          }
          expect([store.count, store.bytes]).toEqual([list.length, bytes()]);
        }
      }),
      { numRuns: 50, endOnFailure: true },
    );
  });
}
