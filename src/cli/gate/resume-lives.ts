import { cp, readdir } from "node:fs/promises";
import type { CellResult } from "./gate-run.ts";
import type { CacheClaim } from "./resume-claim.ts";
import { openResumeEngine, type ResumeEngine } from "./resume-engine.ts";
import { ResumePlayer } from "./resume-player.ts";
import type { ResumeAct } from "./resume-script.ts";
import { damageFiles, plantFiles } from "./resume-spoil.ts";
import { playActs, type ResumeStage } from "./resume-stage.ts";
import { temporaryFolder } from "./temporary-folder.ts";

/** Plays the story over a restart: from what the first engine wrote at its end, and from what became of it. */
export async function lifeCells(stage: ResumeStage, full: boolean): Promise<void> {
  const { run, story } = stage;
  if (run.skips("restarted")) return;
  await using whole = await temporaryFolder();
  await using damaged = await temporaryFolder();
  const middle = Math.ceil(story.turns.length / 2);
  await run.always("restarted: before", () => firstLife(stage, whole.path, middle));
  await cp(whole.path, damaged.path, { recursive: true });
  const rest = [...story.turns.slice(middle), ...story.branches];
  await secondLife(stage, whole.path, rest);
  if (!run.skips("damaged")) await damagedLife(stage, damaged.path, rest);
  if (full) await manyLives(stage);
}

function playerOf({ coverage }: ResumeStage, opened: ResumeEngine, claim: CacheClaim) {
  return new ResumePlayer(opened, [], { claim, settles: true, draft: null }, coverage);
}

async function openOn({ source, sizes }: ResumeStage, folder: string) {
  return await openResumeEngine(source, { cacheBytes: sizes.ample, spill: folder });
}

/** What an engine is told before it ends; then it writes. */
async function firstLife(stage: ResumeStage, folder: string, turns: number): Promise<CellResult> {
  await using opened = await openOn(stage, folder);
  const player = playerOf(stage, opened, "exact");
  for (const act of stage.story.turns.slice(0, turns)) {
    const result = await player.play(act);
    if (!result.ok) return result;
  }
  return { ok: true, detail: `${turns} requests` };
}

async function secondLife(stage: ResumeStage, folder: string, acts: readonly ResumeAct[]) {
  const { run } = stage;
  const planted = await plantFiles(folder);
  await using opened = await openOn(stage, folder);
  await run.always("restarted: foreign files", async () => {
    const left = (await readdir(folder)).filter((file) => planted.includes(file));
    const detail = left.length > 0 ? `${left} are still there` : `${planted.length} are gone`;
    return { ok: left.length === 0, detail };
  });
  const player = playerOf(stage, opened, "nearly");
  const [first, ...others] = acts;
  // Nothing is in memory, so that any file is worth its reading.
  await run.always(`restarted: ${first!.name}`, () => player.play(first!, "exact"));
  await playActs(stage, "restarted", player, others);
}

/** Files that are damaged are misses, found when they are read. */
async function damagedLife(stage: ResumeStage, folder: string, acts: readonly ResumeAct[]) {
  const files = await damageFiles(folder);
  await using opened = await openOn(stage, folder);
  const played = await playActs(stage, "damaged", playerOf(stage, opened, "atMost"), acts);
  if (!played) return;
  await stage.run.always("damaged: no file was believed", async () => {
    const { restores } = opened.watch;
    return { ok: restores === 0, detail: `${restores} of ${files} states were taken` };
  });
}

/** A restart before every request; places in the middle of a text are not written. */
async function manyLives(stage: ResumeStage): Promise<void> {
  await using folder = await temporaryFolder();
  for (const act of [...stage.story.turns, ...stage.story.branches]) {
    await using opened = await openOn(stage, folder.path);
    const player = playerOf(stage, opened, "nearly");
    await stage.run.always(`restarted each time: ${act.name}`, () => player.play(act));
  }
}
