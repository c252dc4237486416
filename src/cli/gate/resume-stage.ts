import { heldBytes } from "../../backend/held.ts";
import type { EngineInfo } from "../../engine.ts";
import { pagesFor } from "../../state/kv-pages.ts";
import type { GateRun } from "./gate-run.ts";
import type { ResumeCoverage } from "./resume-coverage.ts";
import type { ResumeSource } from "./resume-engine.ts";
import type { ResumePlayer } from "./resume-player.ts";
import type { ResumeAct } from "./resume-script.ts";
import type { Story } from "./resume-story.ts";

/** What the cells of the gate are made of. */
export interface ResumeStage {
  readonly run: GateRun;
  readonly source: ResumeSource;
  readonly story: Story;
  readonly sizes: CacheSizes;
  readonly coverage: ResumeCoverage;
}

/** Bytes of caches, and of their files. */
export interface CacheSizes {
  /** Room for everything. */
  readonly ample: number;
  /** Room for the states of one turn. */
  readonly small: number;
  /** What a folder takes in which everything is spilled. */
  readonly spilled: number;
}

/** Caches for a story, by what a model's states and pages take. */
export function cacheSizesOf(
  { backend }: EngineInfo,
  { turns, branches, long }: Story,
): CacheSizes {
  const { memory, pages, shape } = backend;
  const pageBytes = memory.kvBytes / pages;
  const stateBytes = heldBytes(shape);
  const steps = [...turns, ...branches, ...long].flatMap((act) => act.steps);
  const pagesOf = (acts: readonly ResumeAct[]) =>
    acts.flatMap((act) => act.steps).map(({ promptIds }) => pagesFor(promptIds.length));
  const longPages = pagesOf(long).reduce((sum, count) => sum + count, 0);
  const turnPages = Math.max(...pagesOf([...turns, ...branches]));
  return {
    // A step leaves up to four states, with some pages that are no other's.
    ample: steps.length * (4 * stateBytes + 8 * pageBytes) + longPages * pageBytes,
    small: 3 * stateBytes + (turnPages + 2) * pageBytes,
    // Files share nothing.
    spilled: steps.length * 4 * (stateBytes + turnPages * pageBytes),
  };
}

/** @returns false where the sample's time was over before the last */
export async function playActs(
  { run }: ResumeStage,
  name: string,
  player: ResumePlayer,
  acts: readonly ResumeAct[],
): Promise<boolean> {
  for (const act of acts) {
    if (run.skips(`${name}, from ${act.name} on`)) return false;
    await run.always(`${name}: ${act.name}`, () => player.play(act));
  }
  return true;
}
