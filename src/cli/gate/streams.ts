import type { BackendOptions } from "../../backend/backend.ts";
import { windowRowsMax } from "../../limits.ts";
import { pagesFor } from "../../state/kv-pages.ts";
import { viewOf } from "./backend-view.ts";
import { coverageCell } from "./event-counts.ts";
import { streamDrafters } from "./gate-drafters.ts";
import { GateLoop } from "./gate-loop.ts";
import { type GateRun, outOfTime } from "./gate-run.ts";
import { gateSamplings } from "./gate-samplings.ts";
import { noModelDrafter, openGateSet, type ReplySet } from "./gate-set.ts";
import { NanMemory } from "./nan-memory.ts";
import { describeBackend, type GateOptions } from "./options.ts";
import { sampleTokens } from "./sample-tokens.ts";
import { SerialReplies } from "./serial-replies.ts";
import { StreamsCells } from "./streams-cells.ts";
import { coverageCellsMin, StreamsCoverage } from "./streams-coverage.ts";
import { longCells, type StreamsCell, streamsGrid } from "./streams-grid.ts";
import { Guests } from "./streams-guests.ts";
import { longReplyTokens } from "./streams-settings.ts";

const slots = 8;
const rowsMax = 256;
const replyTokens = 12;
/** Of a sample where few cells would be run. */
const slowReplyTokens = 6;
/** The named ones: every request is served alone too. */
const promptsMost = 9;
/** Cells before the first long ones: some of every other kind. */
const shortFirst = 21;

/**
 * A stream among 2 to 8 that come and go has the tokens, the logits of every step, the final state and
 * the drafter's context of its request alone and serially served: drafted or not, whoever has its slot
 * and pages before it, with whom it shares what is cached, and wherever it has to wait.
 */
export async function streamsGate(run: GateRun, options: GateOptions): Promise<string> {
  await using set = await openGateSet(options);
  const prompts = set.prompts.slice(0, promptsMost);
  const grid = { samplings: gateSamplings, drafters: streamDrafters, tokensMax: replyTokens };
  return await streamsOn(run, options, { ...set, ...grid, prompts });
}

/** The gate over any weights and prompts. */
export async function streamsOn(
  run: GateRun,
  { open, full }: Pick<GateOptions, "open" | "full">,
  set: ReplySet,
): Promise<string> {
  await using backend = await open(sizesFor(set));
  const coverage = new StreamsCoverage();
  // Others begin from NaN: what it should not find would not be found in theirs.
  await using alone = new GateLoop(viewOf(backend, { slots: 1, pages: pagesEach(set) }), {}, null);
  const tokens = { whole: set.tokensMax, slow: slowReplyTokens };
  const tokensMax = full ? tokens.whole : await sampleTokens(run, alone, set, tokens);
  const shape = backend.info.drafter;
  const drafters = set.drafters.filter(({ needsModel }) => shape !== null || !needsModel);
  const guests = new Guests({
    serial: new SerialReplies(alone),
    prompts: set.prompts,
    samplings: set.samplings,
    drafters,
    model: shape && { shape, codebooks: set.drafter?.codebooks ?? null },
    vocabSize: set.weights.shape.vocabSize,
    eosIds: set.eosIds,
    tokensMax,
  });
  const cells = new StreamsCells({ backend, nan: new NanMemory(backend), guests, coverage });
  const lacking = set.drafters.filter((drafter) => !drafters.includes(drafter));
  if (lacking.length > 0) {
    run.skip(`drafts by ${lacking.map(({ name }) => name).join(", ")}`, noModelDrafter);
  }
  const slow = tokensMax < set.tokensMax;
  if (slow) run.skip(`replies of ${longReplyTokens} tokens`, "too slow here; --full runs them");
  await runCells(run, cells, gridOf(tokensMax, !slow));
  const count = { ran: cells.ran, least: coverageCellsMin };
  await coverageCell(run, count, coverage.counts, coverage.never(slow ? ["outgrown"] : []));
  return describeBackend(backend);
}

/** Long replies come when some of every other kind was there; those of more than two streams come last. */
function gridOf(replyTokens: number, withLong: boolean): StreamsCell[] {
  const grid = streamsGrid(replyTokens);
  const long = withLong ? longCells() : [];
  const ofTwo = ({ streams }: StreamsCell) => streams === 2;
  const rest = long.filter((cell) => !ofTwo(cell));
  return [...grid.slice(0, shortFirst), ...long.filter(ofTwo), ...grid.slice(shortFirst), ...rest];
}

async function runCells(
  run: GateRun,
  cells: StreamsCells,
  grid: readonly StreamsCell[],
): Promise<void> {
  for (const [number, cell] of grid.entries()) {
    if (run.isOver) {
      const [first] = cell.name.split(":");
      run.skip(`${grid.length - number} of ${grid.length} cells, from ${first} on`, outOfTime);
      return;
    }
    await run.cell(cell.name, () => cells.run(cell));
  }
}

function sizesFor(set: ReplySet): BackendOptions {
  return {
    weights: set.weights,
    drafter: set.drafter?.options ?? null,
    slots,
    pages: slots * pagesEach(set),
    rowsMax,
    drawsMax: slots * windowRowsMax,
    taps: [],
  };
}

/** Pages of one stream, however long. */
function pagesEach({ prompts }: ReplySet): number {
  return pagesFor(Math.max(...prompts.map(({ ids }) => ids.length)) + longReplyTokens);
}
