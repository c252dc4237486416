import type { BackendOptions } from "../../backend/backend.ts";
import { openCheckpoint } from "../../checkpoint/checkpoint.ts";
import { openFolder } from "../../checkpoint/source-node.ts";
import type { TokenId } from "../../ids.ts";
import { windowRowsMax } from "../../limits.ts";
import { modelFolder } from "../../node.ts";
import type { OpenDrafter } from "../../open-drafter.ts";
import { openTemplate, openTokenizer } from "../../open-text.ts";
import { weightsFromCheckpoint } from "../../weights/from-checkpoint.ts";
import type { Weights } from "../../weights/weights.ts";
import { DraftedCells } from "./drafted-cells.ts";
import { Coverage, coverageCellsMin } from "./drafted-coverage.ts";
import { type GateDrafter, gateDrafters } from "./drafted-drafters.ts";
import { describeCells, type GridCell, gridCell, gridTasks } from "./drafted-grid.ts";
import { GateLoop, silentDrafting } from "./drafted-loop.ts";
import { type GatePrompt, gatePrompts } from "./drafted-prompts.ts";
import { type GateSampling, gateSamplings, samplingOf } from "./drafted-samplings.ts";
import { type GateRun, outOfTime } from "./gate-run.ts";
import { describeBackend, type GateOptions } from "./options.ts";
import { pagesFor } from "./timeline.ts";

const slots = 2;
const rowsMax = 256;
const replyTokens = 128;
/** Of a sample where a token takes so long that whole replies would leave most drafters out. */
const slowReplyTokens = 24;
const slowTokenMs = 25;
const timedTokens = 4;
/** What the first tasks, two by two, draft with when they are served together. */
const sharedDrafters: readonly (readonly [string, string])[] = [
  ["tree", "random length"],
  ["right", "copy"],
];

const noDrafter = "there is no drafter for this model";

/** What the grid is made of. */
export interface DraftedSet {
  readonly weights: Weights;
  readonly drafter: Omit<OpenDrafter, keyof AsyncDisposable> | null;
  readonly eosIds: readonly TokenId[];
  readonly prompts: readonly GatePrompt[];
  readonly samplings: readonly GateSampling[];
  readonly drafters: readonly GateDrafter[];
  /** Of a reply. */
  readonly tokensMax: number;
}

/**
 * A reply with drafts has the tokens, the logits of every step, the final state and the drafter's
 * context of the serial reply, whoever drafts. A narrow one has all of these but the logits of its steps,
 * which nobody reads then.
 */
export async function draftedGate(run: GateRun, options: GateOptions): Promise<string> {
  const folder = await openFolder(modelFolder(options.model));
  await using checkpoint = await openCheckpoint(folder);
  const weights = await weightsFromCheckpoint(checkpoint);
  const { vocabSize } = weights.shape;
  const tokenizer = await openTokenizer(folder, vocabSize);
  const template = await openTemplate(folder);
  await using drafter = await options.drafter(weights.shape);
  return await draftedOn(run, options, {
    weights,
    drafter,
    eosIds: checkpoint.config.eosIds,
    prompts: gatePrompts(tokenizer, template, vocabSize),
    samplings: gateSamplings,
    drafters: gateDrafters,
    tokensMax: replyTokens,
  });
}

/** The gate over any weights and any part of the grid. */
export async function draftedOn(
  run: GateRun,
  { open, full }: Pick<GateOptions, "open" | "full">,
  set: DraftedSet,
): Promise<string> {
  const backend = await open(sizesFor(set));
  await using loop = new GateLoop(backend);
  const shape = backend.info.drafter;
  const coverage = new Coverage();
  const cells = new DraftedCells({
    loop,
    coverage,
    vocabSize: set.weights.shape.vocabSize,
    eosIds: set.eosIds,
    model: shape && { shape, codebooks: set.drafter?.codebooks ?? null },
    tokensMax: full ? set.tokensMax : await sampleTokens(run, loop, set),
  });
  await gridOf(run, cells, set);
  await coverageCell(run, coverage, set);
  return describeBackend(backend);
}

function sizesFor({ weights, drafter, prompts, tokensMax }: DraftedSet): BackendOptions {
  const longest = Math.max(...prompts.map(({ ids }) => ids.length));
  return {
    weights,
    drafter: drafter?.options ?? null,
    slots,
    pages: slots * pagesFor(longest + tokensMax),
    rowsMax,
    drawsMax: slots * windowRowsMax,
    taps: [],
  };
}

/** How long a sample's replies are: whole ones, unless the backend is slow. */
async function sampleTokens(
  run: GateRun,
  loop: GateLoop,
  { prompts, samplings, tokensMax }: DraftedSet,
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
  if (tokenMs <= slowTokenMs || tokensMax <= slowReplyTokens) return tokensMax;
  const why = `one takes ${Math.round(tokenMs)} ms here; --full runs them`;
  run.skip(`tokens ${slowReplyTokens + 1} to ${tokensMax} of every reply`, why);
  return slowReplyTokens;
}

async function gridOf(run: GateRun, cells: DraftedCells, set: DraftedSet): Promise<void> {
  const tasks = gridTasks(set.prompts, set.samplings, set.drafters);
  const all = tasks.flat();
  const canRun = ({ drafter }: GridCell) => set.drafter !== null || !drafter.needsModel;
  const shared = sharedCells(tasks, set.drafters);
  const left: GridCell[] = [];
  for (const [number, task] of tasks.entries()) {
    for (const cell of task.filter(canRun)) {
      if (run.isOver) left.push(cell);
      else await run.cell(cell.name, () => cells.alone(cell));
    }
    const pair = shared.get(number);
    if (!pair) continue;
    const name = pair.map((cell) => cell.name).join(" beside ");
    if (pair.every(canRun)) await run.cell(name, () => cells.together(pair));
    else run.skip(name, noDrafter);
  }
  for (const text of describeCells(left, all.filter(canRun))) run.skip(text, outOfTime);
  const lacking = all.filter((cell) => !canRun(cell));
  for (const text of describeCells(lacking, all)) run.skip(text, noDrafter);
}

/** Two tasks side by side, by the number of the second of them: after it they are served together. */
function sharedCells(
  tasks: readonly (readonly GridCell[])[],
  drafters: readonly GateDrafter[],
): ReadonlyMap<number, readonly GridCell[]> {
  const cells = tasks.flat().length;
  const pairs = sharedDrafters.map((names, pair) => {
    const pairCells = names.flatMap((name, at) => {
      const number = 2 * pair + at;
      const task = tasks[number]?.[0]?.task;
      const drafter = drafters.find((known) => known.name === name);
      return task && drafter ? [gridCell(task, drafter, cells + number)] : [];
    });
    return [2 * pair + 1, pairCells] as const;
  });
  return new Map(pairs.filter(([, { length }]) => length === 2));
}

/** Equal bytes prove little where nothing was accepted, or nothing refused. */
async function coverageCell(
  run: GateRun,
  coverage: Coverage,
  { drafters }: DraftedSet,
): Promise<void> {
  if (coverage.cells < coverageCellsMin) {
    run.skip("coverage", `${coverage.cells} cells ran, of the ${coverageCellsMin} that it takes`);
    return;
  }
  await run.always("coverage", async () => {
    const useful = drafters.filter((drafter) => drafter.useful);
    const missing = coverage.missing(useful.map(({ name }) => name));
    const { counts } = coverage;
    const seen = Object.entries(counts).map(([event, count]) => `${event} ${count}`);
    const detail = missing.length === 0 ? seen.join(", ") : missing.join("; ");
    return { ok: missing.length === 0, detail, counts };
  });
}
