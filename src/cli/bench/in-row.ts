import { systemClock } from "../../clock.ts";

/** Rounds in a row that one measurement takes: as when a reply goes on. */
const roundsInRow = 20;

/** ms of a round, behind one that isn't counted. */
export async function inRow(run: () => Promise<unknown>): Promise<number> {
  // The first prepares what the others find.
  await run();
  const begin = systemClock.nowMs();
  for (let count = 0; count < roundsInRow; count++) await run();
  return (systemClock.nowMs() - begin) / roundsInRow;
}
