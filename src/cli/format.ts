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

/** Seconds with one decimal. */
export const secondsText = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;
