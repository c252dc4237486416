import type { TokenId } from "../../ids.ts";
import { type LogitAdjustments, noAdjustments } from "../../sampling/adjust.ts";
import { plainSampling, type SamplingParams } from "../../sampling/params.ts";
import type { PrefixKind } from "../../state/cached-prefix.ts";
import type { PrefixMark, RoundRequest } from "../live-stream.ts";
import { shape } from "./device-options.cases.ts";
import { randomEdge, randomText } from "./prompts.cases.ts";
import type { Random } from "./random.cases.ts";
import { type Scenario, tokensMost } from "./scenario.cases.ts";

const kinds: readonly PrefixKind[] = ["history", "rewind", "reply", "shared", "cut"];

/** Whether there are pages for all of a request; it is refused otherwise. */
export const fits = ({ promptIds, maxTokens }: RoundRequest, scenario: Scenario): boolean =>
  promptIds.length + maxTokens <= tokensMost(scenario);

/** What somebody may ask of a prompt. */
export function randomRequest(
  random: Random,
  scenario: Scenario,
  promptIds: readonly TokenId[],
): RoundRequest {
  const background = random.once(scenario.theme === "long" ? 12 : 6);
  return {
    promptIds,
    maxTokens: replyMost(random, scenario, background),
    sampling: randomSampling(random),
    eosIds: new Set(eosIdsOf(random, scenario)),
    fingerprint: random.once(2),
    draft: !random.once(5),
    priority: background ? "background" : "foreground",
    ...((scenario.theme === "disk" || !random.once(5)) && {
      marks: randomMarks(random, scenario, promptIds.length),
    }),
  };
}

function replyMost(random: Random, scenario: Scenario, background: boolean): number {
  // Now and then more than there is room for.
  if (random.once(30)) return tokensMost(scenario);
  if (background ? random.once(2) : random.once(8)) return 0;
  if (scenario.theme === "long") return random.between(640, 720);
  return random.between(1, scenario.theme === "crowd" ? 3 : random.pick([4, 16, 40]));
}

const eosIdsOf = (random: Random, { theme }: Scenario): TokenId[] =>
  theme === "long" ? [] : randomText(random, random.below(4));

const randomSampling = (random: Random): SamplingParams => ({
  ...plainSampling,
  temperature: random.below(2),
  topK: random.below(30),
  topP: random.pick([1, 1, 0.8]),
  seed: BigInt(random.below(9)),
  adjust: random.once(3) ? randomAdjustments(random) : noAdjustments,
});

function randomAdjustments(random: Random): LogitAdjustments {
  return {
    repetitionPenalty: 1 + random.below(3) / 2,
    presencePenalty: random.below(5) - 2,
    frequencyPenalty: random.below(3) - 1,
    logitBias: new Map(
      random.list(random.below(4), () => [random.below(shape.vocabSize), random.below(9) - 4]),
    ),
  };
}

/** Places in a prompt, in order; sometimes its end. */
function randomMarks(random: Random, scenario: Scenario, rows: number): PrefixMark[] {
  const places = random.list(random.below(4), () =>
    Math.min(rows, random.once(2) ? randomEdge(random, scenario) : random.between(1, rows)),
  );
  if (random.once(2)) places.push(rows);
  return [...new Set(places)]
    .sort((a, b) => a - b)
    .map((place) => ({ rows: place, kind: random.pick(kinds) }));
}
