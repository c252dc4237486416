import type { TokenId } from "../../ids.ts";
import { shape } from "./device-options.cases.ts";
import type { Random } from "./random.cases.ts";
import { type Scenario, tokensMost } from "./scenario.cases.ts";

/** Where pages end, just before, and just behind. */
const edges = [1, 63, 64, 65, 127, 128, 129, 191, 192, 193];

/** A place at which prompts part; those on a disk have more in common. */
export const randomEdge = (random: Random, { theme }: Scenario): number =>
  random.pick(edges) + (theme === "disk" ? 256 : 0);

export const randomText = (random: Random, length: number): TokenId[] =>
  random.list(length, () => random.below(shape.vocabSize));

/** A beginning that many prompts have in common. */
export function randomSystem(random: Random, scenario: Scenario): TokenId[] {
  const rows = random.once(2) ? randomEdge(random, scenario) : random.between(1, 90);
  const least = scenario.theme === "disk" ? random.between(256, 340) : 0;
  return randomText(random, Math.max(rows, least));
}

/**
 * Something new, or what follows from one of the texts that were there before: it goes on, is edited, cut
 * off, or sent again.
 */
export function randomPrompt(
  random: Random,
  scenario: Scenario,
  system: readonly TokenId[],
  texts: readonly (readonly TokenId[])[],
): TokenId[] {
  const most = promptMost(scenario);
  if (scenario.theme === "crowd") {
    return randomText(random, texts.length === 0 ? most : random.between(1, 12));
  }
  const tail = randomText(random, random.between(1, 24));
  if (texts.length === 0 || random.once(5)) return [...system, ...tail].slice(0, most);
  const text = random.pick(texts);
  const at = random.once(2) ? randomEdge(random, scenario) : random.between(1, text.length);
  const kept = text.slice(0, at);
  const longer = [...text, ...tail];
  const next = random.pick([longer, longer, [...kept, ...tail], kept, text, tail]);
  return next.slice(0, most);
}

function promptMost(scenario: Scenario): number {
  const most = { talks: 220, crowd: 200, long: 60, disk: 460 }[scenario.theme];
  return Math.max(1, Math.min(most, tokensMost(scenario) - 30));
}
