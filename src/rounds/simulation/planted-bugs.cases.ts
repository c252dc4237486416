import type { PlantedBug } from "./planted-bug.cases.ts";
import { cacheBugs } from "./planted-cache-bugs.cases.ts";
import { pageBugs } from "./planted-page-bugs.cases.ts";
import { scheduleBugs } from "./planted-schedule-bugs.cases.ts";
import { simulate } from "./world.cases.ts";

export const plantedBugs: readonly PlantedBug[] = [...scheduleBugs, ...cacheBugs, ...pageBugs];

/** How many seeds, from 0 on, it takes to find a bug; null where that many find nothing. */
export async function seedsToFind(
  { plant, foundBy }: PlantedBug,
  seedsMost: number,
): Promise<number | null> {
  for (let seed = 0; seed < seedsMost; seed++) {
    const { failures } = await simulate(seed, plant);
    if (failures.some(({ check }) => foundBy.includes(check))) return seed + 1;
  }
  return null;
}
