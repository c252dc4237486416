import { describe, expect, it } from "vitest";
import { pipeline } from "./pipeline.ts";

/** Stages that note when they begin and end; reading and writing each take a turn of the event loop. */
function notedStages(failAt?: string) {
  const notes: string[] = [];
  const step = async (name: string) => {
    notes.push(`${name} begins`);
    await new Promise((resolve) => setImmediate(resolve));
    if (name === failAt) throw new Error(name);
    notes.push(`${name} ends`);
  };
  return {
    notes,
    async read(block: number) {
      await step(`read ${block}`);
      return 10 * block;
    },
    make(block: number, input: number) {
      notes.push(`make ${block}`);
      if (failAt === `make ${block}`) throw new Error(failAt);
      return input + 1;
    },
    write: (block: number, output: number) => step(`write ${block} ${output}`),
  };
}

describe("pipeline", () => {
  it("reads the next block and writes the one before while it makes one", async () => {
    const stages = notedStages();
    await pipeline([1, 2, 3], stages);
    const order = (...names: string[]) => names.map((name) => stages.notes.indexOf(name));
    for (const places of [
      order("read 2 begins", "make 1", "read 2 ends"),
      order("write 1 11 begins", "make 2", "write 1 11 ends"),
      order("write 1 11 ends", "write 2 21 begins"),
      order("make 3", "write 3 31 ends"),
    ]) {
      expect(places).not.toContain(-1);
      expect(places).toEqual(places.toSorted((a, b) => a - b));
    }
    expect(stages.notes.at(-1)).toBe("write 3 31 ends");
  });

  it("does nothing without blocks", async () => {
    const stages = notedStages();
    await pipeline([], stages);
    expect(stages.notes).toEqual([]);
  });

  it.each(["read 1", "read 3", "make 2", "write 1 11", "write 3 31"])(
    "throws what %s throws, and makes no more",
    async (failAt) => {
      const stages = notedStages(failAt);
      await expect(pipeline([1, 2, 3], stages)).rejects.toThrow(failAt);
      const before = stages.notes.length;
      // An unheard rejection would end the run of tests.
      for (let i = 0; i < 3; i++) await new Promise((resolve) => setImmediate(resolve));
      expect(stages.notes.slice(before).filter((note) => note.startsWith("make"))).toEqual([]);
    },
  );
});
