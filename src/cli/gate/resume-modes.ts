import type { CellResult } from "./gate-run.ts";
import { user } from "./resume-conversation.ts";
import { openResumeEngine, type ResumeEngine } from "./resume-engine.ts";
import { interruptedStep } from "./resume-interrupt.ts";
import { type PlayOptions, ResumePlayer } from "./resume-player.ts";
import { type CacheSizes, playActs, type ResumeStage } from "./resume-stage.ts";
import type { Story } from "./resume-story.ts";
import { temporaryFolder } from "./temporary-folder.ts";

/** How the story is played in one engine. */
export interface ResumeMode extends PlayOptions {
  readonly name: string;
  readonly cache: keyof CacheSizes;
  readonly spills: boolean;
  /** Whether the long texts are played, for which a small cache has no room. */
  readonly long: boolean;
}

const ample = {
  cache: "ample",
  spills: false,
  long: false,
  settles: true,
  draft: null,
} as const;
const small = { ...ample, cache: "small" } as const;

/** The first that a sample plays. */
export const firstModes: readonly ResumeMode[] = [
  { ...ample, name: "cached", claim: "exact", long: true },
  { ...small, name: "spilled", claim: "nearly", spills: true },
  { ...ample, name: "at once", claim: "atOnce", settles: false },
];

/** Others, if there is time. */
export const laterModes: readonly ResumeMode[] = [
  { ...small, name: "evicted", claim: "atMost" },
  { ...ample, name: "cached, drafted", claim: "exact", draft: true },
];

/** Those that a sample doesn't play. */
export const fullModes: readonly ResumeMode[] = [
  { ...ample, name: "cached, plain", claim: "exact", draft: false, long: true },
  { ...ample, name: "at once, drafted", claim: "atOnce", settles: false, draft: true, long: true },
  { ...small, name: "evicted, drafted", claim: "atMost", draft: true },
  { ...small, name: "evicted at once", claim: "atMost", settles: false },
  { ...small, name: "spilled, drafted", claim: "nearly", spills: true, draft: true },
  { ...small, name: "spilled, plain", claim: "nearly", spills: true, draft: false },
  { ...small, name: "spilled at once", claim: "atMost", spills: true, settles: false },
];

/** Plays the story in one engine after the other. */
export async function modeCells(stage: ResumeStage, modes: readonly ResumeMode[]): Promise<void> {
  for (const mode of modes) if (!stage.run.skips(mode.name)) await modeCell(stage, mode);
}

async function modeCell(stage: ResumeStage, mode: ResumeMode): Promise<void> {
  const { source, story, sizes, coverage, run } = stage;
  await using folder = await temporaryFolder();
  const memory = { cacheBytes: sizes[mode.cache], spill: mode.spills ? folder.path : null };
  await using opened = await openResumeEngine(source, memory);
  const { turns, branches } = story;
  const long = mode.long ? story.long : [];
  const player = new ResumePlayer(opened, [...turns, ...branches, ...long], mode, coverage);
  const rows = opened.watch.promptRows;
  if (!(await playActs(stage, mode.name, player, turns))) return;
  if (mode.claim === "exact" && mode.draft) {
    await run.always(`${mode.name}: all turns`, () => onceCell(opened, story, rows));
  }
  if (!(await playActs(stage, mode.name, player, [...branches, ...long]))) return;
  await run.always(`${mode.name}: interrupted`, async () => {
    const step = await interruptedStep(opened, story.interrupted, story.promptOf);
    const result = await player.play({ name: "interrupted", steps: [step] });
    if (result.counts!["cached"]! > story.interrupted.promptIds.length) coverage.add("interrupted");
    return result;
  });
}

/**
 * Of a conversation every token is computed once, by prompts and by passes after replies together, but for
 * the last two of each prompt.
 * @param before rows that were computed before it
 */
async function onceCell(
  { engine, watch }: ResumeEngine,
  { turns, promptOf }: Story,
  before: number,
): Promise<CellResult> {
  await engine.settled();
  const steps = turns.flatMap((act) => act.steps);
  const { request, reply } = steps.at(-1)!;
  const { content } = reply;
  const turn = [{ role: "assistant", content }, user("Goodbye.")];
  const whole = promptOf({ ...request, messages: [...request.messages, ...turn] }).length;
  const rows = watch.promptRows - before;
  const all = steps.reduce((sum, { promptIds }) => sum + promptIds.length, 0);
  const detail = `${rows} rows of ${whole} tokens, for prompts of ${all}`;
  return { ok: rows <= whole + 2 * steps.length, detail };
}
