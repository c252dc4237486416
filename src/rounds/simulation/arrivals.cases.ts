import type { TokenId } from "../../ids.ts";
import type { RoundRequest } from "../live-stream.ts";
import { type Alone, alone } from "./alone.cases.ts";
import { randomPrompt, randomSystem } from "./prompts.cases.ts";
import type { Random } from "./random.cases.ts";
import { fits, randomRequest } from "./requests.cases.ts";
import type { Scenario } from "./scenario.cases.ts";

/** A request, when it comes, when its client leaves, and what it must get. */
export interface Arrival {
  readonly request: RoundRequest;
  /** Whose end it waits for first. */
  readonly after: Arrival | null;
  /** ms after that, or after the start. */
  readonly afterMs: number;
  readonly leave: Leave | null;
  /** Tokens after which its listener ends the reply; 0: never. */
  readonly stopAt: number;
  readonly expected: Alone;
}

/** When a client leaves: ms after it came, or with a token. */
export type Leave = { readonly afterMs: number } | { readonly withToken: number };

/** The requests of a world, in the order in which they were thought of. */
export async function randomArrivals(random: Random, scenario: Scenario): Promise<Arrival[]> {
  const system = randomSystem(random, scenario);
  const texts: TokenId[][] = [];
  const arrivals: Arrival[] = [];
  while (arrivals.length < scenario.requests) {
    const prompt = randomPrompt(random, scenario, system, texts);
    const before = arrivals.slice(-2);
    const arrival = await randomArrival(random, scenario, prompt, before);
    arrivals.push(arrival);
    texts.push([...prompt, ...arrival.expected.ids]);
  }
  return arrivals;
}

async function randomArrival(
  random: Random,
  scenario: Scenario,
  prompt: readonly TokenId[],
  before: readonly Arrival[],
): Promise<Arrival> {
  const { theme, device } = scenario;
  const long = theme === "long";
  const request = randomRequest(random, scenario, prompt);
  const stopAt = random.once(long ? 20 : 8) ? random.between(1, 12) : 0;
  const talks = theme === "talks" || theme === "disk";
  return {
    request,
    after: talks && before.length > 0 && random.once(2) ? random.pick(before) : null,
    afterMs: random.pick([0, random.below(20), random.below(long ? 200 : 600)]),
    leave: random.once(long ? 20 : 5) ? randomLeave(random) : null,
    stopAt,
    expected: fits(request, scenario) ? await alone(request, stopAt, device) : nothing,
  };
}

const nothing: Alone = { ids: [], reason: "error", stateSha: null, contextSha: null };

const randomLeave = (random: Random): Leave =>
  random.once(2) ? { withToken: random.below(7) } : { afterMs: random.below(300) };
