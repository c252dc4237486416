import type { Clock } from "../clock.ts";
import { windowRowsMax } from "../limits.ts";
import { areCosts, type MeasuredCosts, type SharedCosts } from "./cost-table.ts";

/** Timed runs of each part, after one that is not; the fastest counts, as noise only ever adds. */
const timedRuns = 7;
/** A wider window that is cheaper by more than this share says that the narrower was disturbed. */
const dipShare = 0.03;
/**
 * A part that has taken so long, with what its runs need around them, is timed no more: slow passes are steady, and
 * starts are waited for.
 */
const partMs = 400;
/** A plain pass from here on is slow. */
const slowMs = 100;
/** Widths that are timed; between them costs run straight enough. */
const widths: readonly number[] = [1, 2, 3, 4, 5, 6, 8, 10, 12, windowRowsMax];
/** The same where plain passes are slow. */
const slowWidths: readonly number[] = [1, 4, windowRowsMax];

/** Rows of each stream's window in a shared round that is timed. */
export const sharedRows = 4;

/** The parts of a round on the backend at hand, each done when its promise resolves. */
export interface CostRuns {
  /** A verify pass with one window of so many rows, up to its read; of 1: a plain decode pass. */
  verify(rows: number): Promise<void>;
  /** Commits the window that the last `verify` left open, if it did. It may be done while the next runs. */
  keep(): Promise<void>;
  /** A draft pass; null where there is no block drafter. */
  readonly draft: (() => Promise<void>) | null;
}

/**
 * Times the parts of a round of one stream. What is dearer than a wider window is timed again; where it stays so, it
 * is the kernels, which may change with the width.
 * @returns null where the clock is too coarse to tell
 */
export async function measureCosts(runs: CostRuns, clock: Clock): Promise<MeasuredCosts | null> {
  const timeVerify = (rows: number) => timeWindow(runs, rows, clock);
  const times = [await timeVerify(1)];
  const timed = times[0]! < slowMs ? widths : slowWidths;
  for (const rows of timed.slice(1)) times.push(await timeVerify(rows));
  for (const [at, rows] of timed.entries()) {
    const cheapestWider = Math.min(...times.slice(at + 1));
    if (cheapestWider >= times[at]! * (1 - dipShare)) continue;
    times[at] = Math.min(times[at]!, await timeVerify(rows));
  }
  const verify = timed.map((rows, at) => [rows, times[at]!] as const);
  const { keepMs, draftMs } = await timeRest(runs, windowRowsMax, clock);
  const costs = { verify, draftMs, keepMs, shared: null };
  return areCosts(costs) ? costs : null;
}

/**
 * Times the parts of a round that several streams share.
 * @param runs with a window of so many rows, or a block, of each of them
 */
export async function measureShared(
  runs: CostRuns,
  streams: number,
  clock: Clock,
): Promise<SharedCosts> {
  const plainMs = await timeWindow(runs, 1, clock);
  const wideMs = await timeWindow(runs, sharedRows, clock);
  // A row is hardly free: what says so was disturbed.
  const rowMs = Math.max(wideMs - plainMs, plainMs * dipShare) / (streams * (sharedRows - 1));
  return { streams, plainMs, rowMs, ...(await timeRest(runs, sharedRows, clock)) };
}

const timeWindow = (runs: CostRuns, rows: number, clock: Clock): Promise<number> =>
  fastest(clock, () => runs.verify(rows), { after: () => runs.keep() });

/** Of a keep of windows of so many rows, and of a draft pass. */
async function timeRest(
  runs: CostRuns,
  rows: number,
  clock: Clock,
): Promise<Pick<MeasuredCosts, "keepMs" | "draftMs">> {
  const before = () => runs.verify(rows);
  const keepMs = await fastest(clock, () => runs.keep(), { before });
  return { keepMs, draftMs: runs.draft && (await fastest(clock, runs.draft)) };
}

/**
 * The least ms of a run, with what each needs before and after it out of the measure. One run is
 * timed at least: the first may compile kernels.
 */
async function fastest(
  clock: Clock,
  run: () => Promise<void>,
  around: { readonly before?: () => Promise<void>; readonly after?: () => Promise<void> } = {},
): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  const began = clock.nowMs();
  for (let count = 0; count <= timedRuns; count++) {
    await around.before?.();
    const start = clock.nowMs();
    await run();
    const ms = clock.nowMs() - start;
    if (count > 0) least = Math.min(least, ms);
    await around.after?.();
    if (count > 0 && clock.nowMs() - began >= partMs) break;
  }
  return least;
}
