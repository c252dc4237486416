import { describe, expect, it } from "vitest";
import { CheckpointError } from "./errors.ts";
import { kinds, Reads, randomOf, seed } from "./fuzz.cases.ts";

/** Of each of the five kinds of file: 10,000 in all. */
const runs = 2000;
/** What one may ask of its files in all, times their size, and besides: a parser reads ahead and again. */
const readsMax = 4;
const readsBesides = 4096;

// What each may take of time and memory, `npm run fuzz` measures.
describe(`${runs} changed files give a typed error or a model`, () => {
  it.each(Object.entries(kinds))("%s", async (name, make) => {
    let refused = 0;
    for (let run = 0; run < runs; run++) {
      const reads = new Reads();
      const file = make(randomOf(run), reads);
      try {
        await file.open();
      } catch (cause) {
        if (!(cause instanceof CheckpointError)) {
          throw new Error(`${name}: run ${run} of seed ${seed}`, { cause });
        }
        refused++;
      }
      const most = readsMax * file.bytes + readsBesides;
      expect(reads.bytes, `${name}: bytes read by run ${run} of seed ${seed}`).toBeLessThan(most);
    }
    // The changes are neither harmless nor hopeless.
    expect(refused).toBeGreaterThan(runs / 10);
    expect(refused).toBeLessThan(runs);
  });
});
