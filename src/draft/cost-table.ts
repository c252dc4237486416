import { invariant } from "../errors.ts";
import { windowRowsMax } from "../limits.ts";

/** What the parts of a round cost, in ms. Such numbers choose widths, never tokens. */
export interface CostTable {
  /** A verify pass with one window of so many rows, 1 to 16; of 1: a plain decode pass. */
  verifyMs(rows: number): number;
  /** A draft pass, its context rows included; null where there is no block drafter. */
  readonly draftMs: number | null;
  /** Committing a window's rows. */
  readonly keepMs: number;
}

/** What was measured: widths ascending from 1 to 16 rows, each with its ms. */
export interface MeasuredCosts {
  readonly verify: readonly (readonly [rows: number, ms: number])[];
  readonly draftMs: number | null;
  readonly keepMs: number;
  /** The same where every slot has a stream; null where there is one slot, or nobody measured. */
  readonly shared: SharedCosts | null;
}

/** What the parts of a round cost that as many streams share as there are slots. */
export interface SharedCosts {
  readonly streams: number;
  /** A row of each. */
  readonly plainMs: number;
  /** A row more of one of them. */
  readonly rowMs: number;
  /** A block of each; null where there is no block drafter. */
  readonly draftMs: number | null;
  /** Committing a window of each. */
  readonly keepMs: number;
}

/** Whether a table can be made of them. A clock too coarse for a pass measures zeros. */
export function areCosts({ verify, draftMs, keepMs, shared }: MeasuredCosts): boolean {
  const widths = verify.map(([rows]) => rows);
  const ascending = widths.every(
    (rows, at) => Number.isInteger(rows) && rows > (widths[at - 1] ?? 0),
  );
  return (
    ascending &&
    widths[0] === 1 &&
    widths.at(-1) === windowRowsMax &&
    verify.every(([, ms]) => isPositive(ms)) &&
    (draftMs === null || isPositive(draftMs)) &&
    (keepMs === 0 || isPositive(keepMs)) &&
    (shared === null || areShared(shared, draftMs !== null))
  );
}

function areShared(
  { streams, plainMs, rowMs, draftMs, keepMs }: SharedCosts,
  drafts: boolean,
): boolean {
  return (
    Number.isInteger(streams) &&
    streams > 1 &&
    [plainMs, rowMs].every(isPositive) &&
    (drafts ? draftMs !== null && isPositive(draftMs) : draftMs === null) &&
    (keepMs === 0 || isPositive(keepMs))
  );
}

const isPositive = (ms: number): boolean => Number.isFinite(ms) && ms > 0;

/** Costs of one stream alone: joins the measured widths by straight lines. */
export function costTable(costs: MeasuredCosts): CostTable {
  invariant(areCosts(costs), "costs that make no table");
  const { verify, draftMs, keepMs } = costs;
  return {
    verifyMs(rows) {
      invariant(rows >= 1 && rows <= windowRowsMax, `a window of ${rows} rows`);
      const at = verify.findIndex(([width]) => width >= rows);
      const [width, ms] = verify[at]!;
      if (width === rows) return ms;
      const [narrower, less] = verify[at - 1]!;
      return less + ((ms - less) * (rows - narrower)) / (width - narrower);
    },
    draftMs,
    keepMs,
  };
}

/**
 * What a round that several streams share costs each of them: its part of the round that all have, and
 * the rows that it adds. Between one stream and as many as were measured, costs run straight.
 */
export function sharedTable(costs: MeasuredCosts, streams: number): CostTable {
  const alone = costTable(costs);
  const { shared } = costs;
  if (streams === 1 || !shared) return alone;
  const way = (streams - 1) / (shared.streams - 1);
  const between = (one: number, all: number) => one + way * (all - one);
  const plainMs = between(alone.verifyMs(1), shared.plainMs) / streams;
  const aloneRowMs = (alone.verifyMs(windowRowsMax) - alone.verifyMs(1)) / (windowRowsMax - 1);
  const rowMs = between(aloneRowMs, shared.rowMs);
  return {
    verifyMs: (rows) => plainMs + (rows - 1) * rowMs,
    draftMs: alone.draftMs && between(alone.draftMs, shared.draftMs!) / streams,
    keepMs: between(alone.keepMs, shared.keepMs) / streams,
  };
}
