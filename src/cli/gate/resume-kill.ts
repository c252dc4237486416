import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { CellResult } from "./gate-run.ts";
import { openResumeEngine } from "./resume-engine.ts";
import { ResumePlayer } from "./resume-player.ts";
import { partFiles, spilledFiles } from "./resume-spoil.ts";
import { playActs, type ResumeStage } from "./resume-stage.ts";
import type { Death, VictimTask } from "./resume-victim.ts";
import { temporaryFolder } from "./temporary-folder.ts";

const victim = fileURLToPath(
  new URL(
    import.meta.url.endsWith(".ts") ? "./resume-victim.ts" : "./resume-victim.js",
    import.meta.url,
  ),
);

/** A file has a header, ids, six arrays in pieces, and a checksum. */
const sampleDeaths: readonly Death[] = [
  { file: 4, pieces: 3 },
  { file: 9, pieces: 100 },
];

const fullDeaths: readonly Death[] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 100].map((pieces, at) => {
  return { file: 4 + 3 * at, pieces };
});

/** Kills a process while it spills, and plays the story over what it has left. */
export async function killCells(stage: ResumeStage, full: boolean): Promise<void> {
  for (const death of full ? fullDeaths : sampleDeaths) {
    const name = `killed in file ${death.file} after ${death.pieces} pieces`;
    if (stage.run.skips(name)) return;
    await using folder = await temporaryFolder();
    const spill = join(folder.path, "spill");
    await stage.run.always(name, () => kill(stage, folder.path, spill, death));
    await afterlife(stage, name, spill, full);
  }
}

async function kill(
  { source, story, sizes }: ResumeStage,
  folder: string,
  spill: string,
  death: Death,
): Promise<CellResult> {
  const { model, choice } = source;
  const steps = [...story.turns, ...story.branches].flatMap((act) => act.steps);
  const task: VictimTask = {
    source: { model, choice },
    memory: { cacheBytes: sizes.small, spill },
    requests: steps.map(({ request }) => request),
    death,
  };
  const file = join(folder, "task.json");
  await writeFile(file, JSON.stringify(task));
  const child = spawn(process.execPath, [victim, file], { stdio: ["ignore", "ignore", "pipe"] });
  let errors = "";
  child.stderr.on("data", (data: Buffer) => {
    errors += data.toString();
  });
  const [, signal] = await once(child, "close");
  if (signal !== "SIGKILL") return { ok: false, detail: `it was not killed: ${errors}` };
  const [parts, whole] = [await partFiles(spill), await spilledFiles(spill)];
  const detail = `${whole.length} files, and ${parts.length} begun ${errors}`;
  return { ok: parts.length === 1 && whole.length === death.file && errors === "", detail };
}

/** An engine over what is left: it loses nothing that was written, and nothing is there by halves. */
async function afterlife(stage: ResumeStage, name: string, spill: string, full: boolean) {
  const { source, story, sizes, run, coverage } = stage;
  const before = await spilledFiles(spill);
  await using opened = await openResumeEngine(source, { cacheBytes: sizes.ample, spill });
  await run.always(`${name}: what is left`, async () => {
    const [parts, whole] = [await partFiles(spill), await spilledFiles(spill)];
    const detail = `${whole.length} of ${before.length} files, and ${parts.length} begun`;
    return { ok: parts.length === 0 && whole.length === before.length, detail };
  });
  const options = { claim: "any", settles: true, draft: null } as const;
  const player = new ResumePlayer(opened, [], options, coverage);
  const acts = full ? story.turns : story.turns.slice(0, Math.ceil(story.turns.length / 2));
  if (!(await playActs(stage, name, player, acts))) return;
  await run.always(`${name}: what was written is read`, async () => {
    const { restores } = opened.watch;
    return { ok: restores > 0, detail: `${restores} states` };
  });
}
