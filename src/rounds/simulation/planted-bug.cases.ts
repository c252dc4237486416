import type { Check } from "./journal.cases.ts";

/** A bug that the simulation must find. */
export interface PlantedBug {
  readonly name: string;
  /** What must be found wrong; any one of these. */
  readonly foundBy: readonly Check[];
  /** Makes every loop have it. @returns takes it back */
  readonly plant: () => () => void;
}

/** Several patches of one bug. */
export function together(...undo: readonly (() => void)[]): () => void {
  return () => {
    for (const each of undo.toReversed()) each();
  };
}
