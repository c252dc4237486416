import type { Backend, PassHandle } from "../backend/backend.ts";
import { firstRows } from "../backend/windows.ts";
import type { Clock } from "../clock.ts";
import { areCosts, type MeasuredCosts } from "../draft/cost-table.ts";
import { type CostRuns, measureCosts, measureShared, sharedRows } from "../draft/measure-costs.ts";
import { type PageId, pageId, type SlotId, slotId } from "../ids.ts";
import { pageRows } from "../limits.ts";
import { planPass, type SegmentRequest } from "../model/plan.ts";

/** Tokens before the timed windows: attention has something to do, and there is room in three pages. */
const contextRows = 2 * pageRows;
const alonePages = 3;
/** The same where streams are timed together, each in a page of its own. */
const sharedContextRows = pageRows / 4;

/**
 * Times the parts of a round on a backend that serves nobody yet, of one stream, and of as many as there
 * are slots. A keep is done while the next pass waits, so its time is in that of the windows, as it is
 * when streams are served.
 * @returns null where the clock is too coarse to tell, or the context too short to try
 */
export async function windowCosts(backend: Backend, clock: Clock): Promise<MeasuredCosts | null> {
  const { slots, pages, rowsMax, drawsMax } = backend.info;
  if (pages < alonePages) return null;
  const costs = await withStreams(backend, 1, alonePages, contextRows, (runs) =>
    measureCosts(runs, clock),
  );
  const rows = slots * Math.max(sharedRows, backend.info.drafter?.blockRows ?? 0);
  if (!costs || slots === 1 || pages < slots || rows > Math.min(rowsMax, drawsMax)) return costs;
  const shared = await withStreams(backend, slots, 1, sharedContextRows, (runs) =>
    measureShared(runs, slots, clock),
  );
  return areCosts({ ...costs, shared }) ? { ...costs, shared } : costs;
}

async function withStreams<T>(
  backend: Backend,
  count: number,
  pagesEach: number,
  rows: number,
  use: (runs: CostRuns) => Promise<T>,
): Promise<T> {
  const streams = Array.from({ length: count }, (_, index) => ({
    slot: slotId(index),
    pages: Array.from({ length: pagesEach }, (_, page) => pageId(index * pagesEach + page)),
  }));
  for (const { slot } of streams) backend.open(slot);
  try {
    return await use(await timedRuns(backend, streams, rows));
  } finally {
    for (const { slot } of streams) backend.release(slot);
  }
}

/** Rounds of open slots, behind `rows` tokens of context. */
async function timedRuns(
  backend: Backend,
  streams: readonly { readonly slot: SlotId; readonly pages: readonly PageId[] }[],
  rows: number,
): Promise<CostRuns> {
  const { drafter, rowsMax } = backend.info;
  const plan = (start: number, count: number, changes: Partial<SegmentRequest> = {}) =>
    planPass(
      streams.map(({ slot, pages }) => ({
        ids: new Array<number>(count).fill(0),
        start,
        stateSlot: slot,
        nextSlot: slot,
        pages,
        draw: "none",
        candidates: 1,
        ...changes,
      })),
    );
  const chunk = Math.floor(rowsMax / streams.length);
  for (let at = 0; at < rows; at += chunk) {
    const count = Math.min(chunk, rows - at);
    await backend.read(backend.prefill(plan(at, count)));
    if (drafter) backend.extend(plan(at, count));
  }
  let open: { readonly handle: PassHandle; readonly rows: number } | null = null;
  return {
    verify: async (count) => {
      const window = count > 1;
      const handle = backend.verify(plan(rows, count, { draw: "all", window }));
      if (window) open = { handle, rows: count };
      await backend.read(handle);
    },
    keep: async () => {
      if (open)
        backend.keep(
          open.handle,
          streams.map(() => firstRows(open!.rows)),
        );
      open = null;
    },
    draft:
      drafter &&
      (async () => {
        const given = Math.min(rows, drafter.blockRows);
        backend.extend(plan(rows - given, given));
        const { candidates, blockRows } = drafter;
        await backend.read(backend.draft(plan(rows, blockRows, { draw: "block", candidates })));
      }),
  };
}
