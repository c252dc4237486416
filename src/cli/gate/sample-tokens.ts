import type { TokenId } from "../../ids.ts";
import { type GateLoop, silentDrafting } from "./gate-loop.ts";
import type { GatePrompt } from "./gate-prompts.ts";
import type { GateRun } from "./gate-run.ts";
import { type GateSampling, samplingOf } from "./gate-samplings.ts";

const slowTokenMs = 25;
const timedTokens = 4;

/** How long replies are: whole, or where a token takes so long that few cells would be run. */
interface ReplyTokens {
  readonly whole: number;
  readonly slow: number;
}

/** What a sample's replies begin with. */
interface First {
  readonly prompts: readonly GatePrompt[];
  readonly samplings: readonly GateSampling[];
}

/** How long a sample's replies are: whole ones, unless the backend is slow. */
export async function sampleTokens(
  run: GateRun,
  loop: GateLoop,
  { prompts, samplings }: First,
  { whole, slow }: ReplyTokens,
): Promise<number> {
  const promptIds = prompts[0]!.ids;
  const asked = {
    promptIds,
    maxTokens: timedTokens,
    sampling: samplingOf(samplings[0]!, promptIds),
    eosIds: new Set<TokenId>(),
    stopAfter: null,
    wide: true,
  };
  // The first reply prepares what the others find.
  await loop.serve(asked, silentDrafting);
  const startMs = run.elapsedMs;
  await loop.serve(asked, silentDrafting);
  const tokenMs = (run.elapsedMs - startMs) / timedTokens;
  if (tokenMs <= slowTokenMs || whole <= slow) return whole;
  const why = `one takes ${Math.round(tokenMs)} ms here; --full runs them`;
  run.skip(`tokens ${slow + 1} to ${whole} of every reply`, why);
  return slow;
}
