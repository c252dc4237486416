/** A size for people: MiB or GiB with one decimal. */
export function bytesText(bytes: number): string {
  const mib = bytes / 2 ** 20;
  return mib < 1024 ? `${mib.toFixed(1)} MiB` : `${(mib / 1024).toFixed(1)} GiB`;
}

/** A count for people: 21.9 M, 27.4 B. */
export function countText(count: number): string {
  if (count >= 1e9) return `${(count / 1e9).toFixed(1)} B`;
  if (count >= 1e6) return `${(count / 1e6).toFixed(1)} M`;
  return String(count);
}

/** A line of a report. */
export type Line = readonly [name: string, value: string];

/** Blocks of lines, with all values in one column. */
export function aligned(blocks: readonly (readonly Line[])[]): string {
  const width = Math.max(...blocks.flat().map(([name]) => name.length)) + 2;
  const textOf = ([name, value]: Line) => (name.padEnd(width) + value).trimEnd();
  return blocks.map((lines) => lines.map(textOf).join("\n")).join("\n\n");
}

export const plural = (count: number, noun: string): string =>
  `${count} ${noun}${count === 1 ? "" : "s"}`;

/** Seconds with one decimal. */
export const secondsText = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;
