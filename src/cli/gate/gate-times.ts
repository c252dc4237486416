import type { Clock } from "../../clock.ts";
import type { MeasuredCosts } from "../../draft/cost-table.ts";
import { windowRowsMax } from "../../limits.ts";
import { type Random, randomInts } from "./timeline.ts";

const seed = 20261202;
/** Of one reading of the clock; a plain pass takes 1 ms by the made-up costs. */
const stepMsMost = 4;

/**
 * Costs of rounds as no machine has them: a block takes 0.1 to 0.6 of a plain pass, each further row of a
 * window 0.02 to 0.4. Between these, drafting always pays, pays in narrow windows, or doesn't pay.
 */
export function madeUpCosts(random: Random): MeasuredCosts {
  const rowMs = (1 + random(20)) / 50;
  const draftMs = (1 + random(6)) / 10;
  const verify = [
    [1, 1],
    [windowRowsMax, 1 + (windowRowsMax - 1) * rowMs],
  ] as const;
  const keepMs = 0.05;
  // Eight streams: rows of others cost half as much, and a block of each twice one.
  const shared = { streams: 8, plainMs: 2, rowMs: rowMs / 2, draftMs: 2 * draftMs, keepMs };
  return { verify, draftMs, keepMs, shared };
}

/**
 * Rounds take as long as a seeded generator says. What is drafted follows from times, so a cell that fails
 * fails again, on a busy machine too.
 */
export class MadeUpClock implements Clock {
  #random = randomInts(seed);
  #ms = 0;

  /** The same times come again. */
  restart(): void {
    this.#random = randomInts(seed);
  }

  nowMs(): number {
    this.#ms += (stepMsMost * (1 + this.#random(1000))) / 1000;
    return this.#ms;
  }

  unixSeconds(): number {
    return 0;
  }
}
