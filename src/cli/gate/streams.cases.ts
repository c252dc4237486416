import { tinySet } from "./drafted.cases.ts";
import type { Opener } from "./faulty.cases.ts";
import { streamDrafters } from "./gate-drafters.ts";
import { runCells } from "./gate-run.cases.ts";
import type { GateReport } from "./gate-run.ts";
import { gateSamplings } from "./gate-samplings.ts";
import type { ReplySet } from "./gate-set.ts";
import { streamsOn } from "./streams.ts";
import { randomInts } from "./timeline.ts";

const random = randomInts(6);
const { vocabSize } = tinySet.weights.shape;
const prompt = (name: string, length: number) => ({
  name,
  ids: Array.from({ length }, () => random(vocabSize)),
});

/** Prompts of less than a page and of more. */
export const tinyStreams: ReplySet = {
  ...tinySet,
  prompts: [...tinySet.prompts, prompt("one token", 1), prompt("a page", 64), prompt("long", 130)],
  samplings: gateSamplings,
  drafters: streamDrafters,
  tokensMax: 12,
};

/** So many cells of streams. */
export const runStreams = (open: Opener, set: ReplySet, cells: number): Promise<GateReport> =>
  runCells("streams", cells, (run) => streamsOn(run, { open, full: false }, set));
