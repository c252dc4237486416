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
}

/** Whether a table can be made of them. A clock too coarse for a pass measures zeros. */
export function areCosts({ verify, draftMs, keepMs }: MeasuredCosts): boolean {
  const widths = verify.map(([rows]) => rows);
  const ascending = widths.every(
    (rows, at) => Number.isInteger(rows) && rows > (widths[at - 1] ?? 0),
  );
  const positive = (ms: number) => Number.isFinite(ms) && ms > 0;
  return (
    ascending &&
    widths[0] === 1 &&
    widths.at(-1) === windowRowsMax &&
    verify.every(([, ms]) => positive(ms)) &&
    (draftMs === null || positive(draftMs)) &&
    (keepMs === 0 || positive(keepMs))
  );
}

/** Joins the measured widths by straight lines. */
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
