import { openFolder } from "../../checkpoint/source-node.ts";
import { spillFreeBytesMin } from "../../limits.ts";
import { modelFolder } from "../../node.ts";
import { openTemplate, openTokenizer } from "../../open-text.ts";
import { spillFiles } from "../../state/spill-files-node.ts";
import { coverageCell } from "./event-counts.ts";
import type { GateRun } from "./gate-run.ts";
import { describeBackend, type GateOptions } from "./options.ts";
import { coverageCellsMin, ResumeCoverage } from "./resume-coverage.ts";
import { openResumeEngine, type ResumeSource } from "./resume-engine.ts";
import { killCells } from "./resume-kill.ts";
import { lifeCells } from "./resume-lives.ts";
import { firstModes, fullModes, laterModes, modeCells } from "./resume-modes.ts";
import type { PromptOf } from "./resume-script.ts";
import { cacheSizesOf, type ResumeStage } from "./resume-stage.ts";
import { type StorySize, writeStory } from "./resume-story.ts";
import { temporaryFolder } from "./temporary-folder.ts";

const wholeStory: StorySize = { turns: 12, long: true };
/** There are no more at once. */
const folders = 2;

/**
 * A conversation costs its new tokens, and nothing else of it depends on the cache: with one or none, in
 * memory or on disk, whole, short of room or damaged, after a restart and after a kill, every reply has
 * the tokens, the final state and the drafter's context that it has where nothing is cached.
 */
export async function resumeGate(run: GateRun, options: GateOptions): Promise<string> {
  return await resumeOn(run, options, wholeStory);
}

/** The gate with a story of any size. */
export async function resumeOn(
  run: GateRun,
  options: Pick<GateOptions, "open" | "model" | "choice" | "full">,
  size: StorySize,
): Promise<string> {
  const { open, model, choice, full } = options;
  const source: ResumeSource = { open, model, choice: choice ?? {} };
  const promptOf = await promptsOf(source);
  if (!promptOf) {
    run.skip("all", `${model} has no chat template`);
    return "none";
  }
  const { story, info } = await writtenStory(run, source, promptOf, size, full);
  const device = describeBackend({ info: info.backend });
  if (!story) return device;
  const sizes = cacheSizesOf(info, story);
  const stage: ResumeStage = { run, source, story, sizes, coverage: new ResumeCoverage() };
  await modeCells(stage, firstModes);
  if ((await freeBytes()) < spillFreeBytesMin + folders * sizes.spilled) {
    run.skip("restarted, damaged, killed", "the disk of temporary files has too little room");
  } else {
    await lifeCells(stage, full);
    if (choice) await killCells(stage, full);
  }
  await modeCells(stage, full ? [...laterModes, ...fullModes] : laterModes);
  if (!run.skips("coverage")) {
    const count = { ran: run.ran, least: coverageCellsMin };
    await coverageCell(run, count, stage.coverage.counts, stage.coverage.never());
  }
  return device;
}

async function writtenStory(
  run: GateRun,
  source: ResumeSource,
  promptOf: PromptOf,
  size: StorySize,
  full: boolean,
) {
  await using plain = await openResumeEngine(source, { cacheBytes: 0, spill: null });
  return { story: await writeStory(run, plain, promptOf, size, full), info: plain.engine.info };
}

/** Renders prompts as the engine is to do; null without a template. */
async function promptsOf({ model, choice }: ResumeSource): Promise<PromptOf | null> {
  const folder = await openFolder(modelFolder(model));
  const tokenizer = await openTokenizer(folder, Number.POSITIVE_INFINITY);
  const template = await openTemplate(folder);
  return (
    template &&
    (({ messages, tools = null, templateKwargs }) =>
      tokenizer.encode(
        template.render(messages, {
          tools,
          addGenerationPrompt: true,
          kwargs: { enable_thinking: choice.thinking ?? null, ...templateKwargs },
        }),
      ))
  );
}

async function freeBytes(): Promise<number> {
  await using folder = await temporaryFolder();
  return await spillFiles(folder.path).freeBytes();
}
