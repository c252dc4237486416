import type { BackendOptions } from "../../backend/backend.ts";
import { windowRowsMax } from "../../limits.ts";
import { pagesFor } from "../../state/kv-pages.ts";
import { DraftedCells } from "./drafted-cells.ts";
import { Coverage, coverageCellsMin } from "./drafted-coverage.ts";
import { describeCells, type GridCell, gridCell, gridTasks } from "./drafted-grid.ts";
import { coverageCell } from "./event-counts.ts";
import { type GateDrafter, gateDrafters } from "./gate-drafters.ts";
import { GateLoop } from "./gate-loop.ts";
import { type GateRun, outOfTime } from "./gate-run.ts";
import { gateSamplings } from "./gate-samplings.ts";
import { noModelDrafter, openGateSet, type ReplySet } from "./gate-set.ts";
import { describeBackend, type GateOptions } from "./options.ts";
import { sampleTokens } from "./sample-tokens.ts";

const slots = 2;
const rowsMax = 256;
const replyTokens = 128;
/** Of a sample where whole replies would leave most drafters out. */
const slowReplyTokens = 24;
/** What the first tasks, two by two, draft with when they are served together. */
const sharedDrafters: readonly (readonly [string, string])[] = [
  ["tree", "random length"],
  ["right", "copy"],
];

/**
 * A reply with drafts has the tokens, the logits of every step, the final state and the drafter's
 * context of the serial reply, whoever drafts. A narrow one has all of these but the logits of its steps,
 * which nobody reads then.
 */
export async function draftedGate(run: GateRun, options: GateOptions): Promise<string> {
  await using set = await openGateSet(options);
  const grid = { samplings: gateSamplings, drafters: gateDrafters, tokensMax: replyTokens };
  return await draftedOn(run, options, { ...set, ...grid });
}

/** The gate over any weights and any part of the grid. */
export async function draftedOn(
  run: GateRun,
  { open, full }: Pick<GateOptions, "open" | "full">,
  set: ReplySet,
): Promise<string> {
  const backend = await open(sizesFor(set));
  await using loop = new GateLoop(backend);
  const shape = backend.info.drafter;
  const coverage = new Coverage();
  const tokens = { whole: set.tokensMax, slow: slowReplyTokens };
  const cells = new DraftedCells({
    loop,
    coverage,
    vocabSize: set.weights.shape.vocabSize,
    eosIds: set.eosIds,
    model: shape && { shape, codebooks: set.drafter?.codebooks ?? null },
    tokensMax: full ? set.tokensMax : await sampleTokens(run, loop, set, tokens),
  });
  await gridOf(run, cells, set);
  const useful = set.drafters.filter((drafter) => drafter.useful).map(({ name }) => name);
  const count = { ran: coverage.cells, least: coverageCellsMin };
  await coverageCell(run, count, coverage.counts, coverage.missing(useful));
  return describeBackend(backend);
}

function sizesFor({ weights, drafter, prompts, tokensMax }: ReplySet): BackendOptions {
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

async function gridOf(run: GateRun, cells: DraftedCells, set: ReplySet): Promise<void> {
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
    else run.skip(name, noModelDrafter);
  }
  for (const text of describeCells(left, all.filter(canRun))) run.skip(text, outOfTime);
  const lacking = all.filter((cell) => !canRun(cell));
  for (const text of describeCells(lacking, all)) run.skip(text, noModelDrafter);
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
