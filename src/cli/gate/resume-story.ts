import type { GateRun } from "./gate-run.ts";
import { writeBranches, writeInterrupted, writeLong } from "./resume-branches.ts";
import { ScriptedConversation } from "./resume-conversation.ts";
import type { ResumeEngine } from "./resume-engine.ts";
import { type PromptOf, type ResumeAct, type ResumeStep, ScriptWriter } from "./resume-script.ts";

/** How much is served. */
export interface StorySize {
  /** Of the conversation, from 2 to 12. */
  readonly turns: number;
  /** Whether there is a text of many chunks. */
  readonly long: boolean;
}

/** A conversation, and what becomes of it. */
export interface Story {
  readonly promptOf: PromptOf;
  /** The turns. */
  readonly turns: readonly ResumeAct[];
  /** What else is done with them. */
  readonly branches: readonly ResumeAct[];
  /** A text of many chunks, for caches that have room for it. */
  readonly long: readonly ResumeAct[];
  readonly interrupted: ResumeStep;
}

/** Of a sample where a turn takes long; where it takes longer still, no story is played to its end. */
const slowSize: StorySize = { turns: 3, long: false };
const slowTurnMs = 6_000;
const slowestTurnMs = 20_000;

/**
 * Writes a story down in an engine that caches nothing.
 * @returns null where that is too slow for a sample
 */
export async function writeStory(
  run: GateRun,
  plain: ResumeEngine,
  promptOf: PromptOf,
  size: StorySize,
  full: boolean,
): Promise<Story | null> {
  const writer = new ScriptWriter(plain, promptOf);
  const conversation = new ScriptedConversation(writer);
  const startMs = run.elapsedMs;
  await conversation.turn(1);
  const turnMs = full ? 0 : run.elapsedMs - startMs;
  const why = `one takes ${Math.round(turnMs / 1000)} s here; --full runs them`;
  if (turnMs > slowestTurnMs) {
    run.skip("all turns", why);
    return null;
  }
  const slow = turnMs > slowTurnMs && size.turns > slowSize.turns;
  const { turns, long } = slow ? slowSize : size;
  if (slow) run.skip(`turns ${turns + 1} to ${size.turns}, and long texts`, why);
  for (let turn = 2; turn <= turns; turn++) await conversation.turn(turn);
  return {
    promptOf,
    turns: conversation.acts,
    branches: await writeBranches(writer, conversation),
    long: long ? await writeLong(writer) : [],
    interrupted: await writeInterrupted(writer),
  };
}
