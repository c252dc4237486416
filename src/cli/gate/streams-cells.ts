import type { Backend } from "../../backend/backend.ts";
import { derivedSizes } from "../../model/shape.ts";
import type { ViewSizes } from "./backend-view.ts";
import { differenceOf, GateLoop, type Served, tokenDifference } from "./gate-loop.ts";
import type { CellResult } from "./gate-run.ts";
import type { NanMemory } from "./nan-memory.ts";
import { countsOf, figuresOf } from "./reply-counts.ts";
import { Company } from "./streams-company.ts";
import type { StreamsCoverage } from "./streams-coverage.ts";
import type { StreamsCell } from "./streams-grid.ts";
import type { Guests, KnownGuest } from "./streams-guests.ts";
import { CellWatch } from "./streams-watch.ts";

/** Small chunks, so that a prompt takes several; else whole prompts of a page or four. */
const smallChunkRows = 32;

/** What all cells share. */
export interface CellsSetting {
  readonly backend: Backend;
  readonly nan: NanMemory;
  readonly guests: Guests;
  readonly coverage: StreamsCoverage;
}

/** Runs cells of the grid: each stream of a cell equals its own serial reply. */
export class StreamsCells {
  readonly #setting: CellsSetting;
  /** How many ran. */
  ran = 0;

  constructor(setting: CellsSetting) {
    this.#setting = setting;
  }

  async run(cell: StreamsCell): Promise<CellResult> {
    this.ran++;
    const guests = await this.#setting.guests.of(cell);
    const watch = new CellWatch(this.#setting.coverage);
    const served = await this.#serve(cell, guests, watch);
    this.#cover(cell, guests, served, watch);
    const cached = served.reduce((sum, { outcome }) => sum + outcome.cachedRows, 0);
    const counts = { ...countsOf(served), cached, parked: watch.parked };
    const figures = `${figuresOf(counts)}, ${cached} rows cached, ${watch.parked} parked`;
    const differences = guests.flatMap((guest, at) => {
      const difference = differenceFrom(guest, served[at]!);
      return difference === null ? [] : [`stream ${at} (${guest.name}): ${difference}`];
    });
    const ok = differences.length === 0;
    return { ok, detail: ok ? figures : `${differences.join("; ")} (${figures})`, counts };
  }

  /** By a loop of its own, which begins with nothing cached. */
  async #serve(
    { setting, join, turn }: StreamsCell,
    guests: readonly KnownGuest[],
    watch: CellWatch,
  ): Promise<readonly Served[]> {
    const { backend, nan, coverage } = this.#setting;
    const turns = guests.map((guest) => guest.turn);
    const lengths = turns.map(([{ promptIds, maxTokens }]) => {
      return { promptTokens: promptIds.length, maxTokens };
    });
    const slots = setting.slots(guests.length);
    // Divided equally among the slots, so that every page is filled with NaN.
    const sizes = { slots, pages: slots * Math.ceil(setting.pages(lengths) / slots) };
    const cache = { bytesMax: cacheBytes(backend, setting.states, sizes), spill: null };
    const small = join.amid || turn % 2 === 0;
    const options = { cache, ...(small && { chunkRows: smallChunkRows }) };
    const loop = new GateLoop(watch.view(backend, sizes), options, nan);
    let served: readonly Served[];
    try {
      await loop.spoil(turns);
      served = await new Company(guests, loop, watch, coverage).serve();
    } finally {
      await loop[Symbol.asyncDispose]();
    }
    loop.checkFree();
    return served;
  }

  /** What is known only when all streams are over. */
  #cover(
    { setting }: StreamsCell,
    guests: readonly KnownGuest[],
    served: readonly Served[],
    { parked, resumes }: CellWatch,
  ): void {
    const { coverage } = this.#setting;
    for (const [at, { outcome, rows }] of served.entries()) {
      const [{ stopAfter }] = guests[at]!.turn;
      if (outcome.reason === "cancelled") coverage.add("cancelled");
      if (outcome.reason === "stop" && stopAfter !== null) coverage.add("stopped");
      if (outcome.cachedRows > 0) coverage.add("cached");
      if (!rows) coverage.add("narrow");
    }
    const resumed = resumes - served.filter(({ outcome }) => outcome.cachedRows > 0).length;
    if (parked > 0) coverage.add(setting.long ? "outgrown" : "parked");
    if (resumed > 0) coverage.add("resumed");
    if (parked > resumed) coverage.add("refilled");
  }
}

/** What a number of states takes beside all pages; 0: nothing is cached. */
function cacheBytes({ info }: Backend, states: number, { pages }: ViewSizes): number {
  if (states === 0) return 0;
  const { linearLayers, stateFloats, historyFloats } = derivedSizes(info.shape);
  const stateBytes = 4 * linearLayers * (stateFloats + historyFloats);
  return states * stateBytes + (info.memory.kvBytes * pages) / info.pages;
}

/** A cancelled stream has what it would have had, as far as it came. */
function differenceFrom({ expected, turn, cancelAt }: KnownGuest, actual: Served): string | null {
  const [, drafting] = turn;
  if (cancelAt === null || actual.outcome.reason !== "cancelled") {
    return differenceOf(expected, actual, drafting !== null);
  }
  const difference = tokenDifference(expected, actual);
  const tokens = actual.ids.length;
  // A token may have been on its way.
  if (difference || tokens <= Math.max(1, cancelAt)) return difference;
  return `it had ${tokens} tokens, and was cancelled at ${cancelAt}`;
}
