import { expect, test } from "vitest";
import { plantedBugs, seedsToFind } from "./simulation/planted-bugs.cases.ts";
import { Sights } from "./simulation/sights.cases.ts";
import { simulate } from "./simulation/world.cases.ts";

/** More of them, and one with all that happens in it: `npm run sim`. */
const seeds = Array.from({ length: 300 }, (_, seed) => seed);
const sights = new Sights();

test.each(seeds)("seed %i", async (seed) => {
  const { failures, lines } = await simulate(seed);
  expect(failures).toEqual([]);
  sights.look(lines);
});

test("everything comes about that a world is made of", () => {
  expect(sights.missing).toEqual([]);
});

test.each(plantedBugs)("finds a planted bug: $name", async (bug) => {
  expect(await seedsToFind(bug, 1000)).not.toBeNull();
});
