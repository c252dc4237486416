/** A median with what was around it. */
export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

/** @param values at least one */
export function spread(values: readonly number[]): Spread {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  const median = (sorted[Math.ceil(middle) - 1]! + sorted[Math.floor(middle)]!) / 2;
  return { median: rounded(median), min: rounded(sorted[0]!), max: rounded(sorted.at(-1)!) };
}

/** To two decimals. */
export const rounded = (value: number): number => Math.round(value * 100) / 100;
