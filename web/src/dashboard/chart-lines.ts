/** Where the lines of a chart run. */

export interface Point {
  readonly atMs: number;
  readonly value: number | null;
}

/** What a chart shows, and the box that it has. */
export interface Frame {
  readonly fromMs: number;
  readonly toMs: number;
  /** The value of the upper edge; that of the lower is 0. */
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

/** Points further apart have no line between them: nobody looked. */
const gapMs = 5000;
const minuteMs = 60_000;
const spanMinutes = [1, 2, 5, 10];

/** The path of a line, in the coordinates of the box. */
export function pathOf(points: readonly Point[], frame: Frame): string {
  const { fromMs, toMs, top, width, height } = frame;
  let path = "";
  let lastMs = Number.NEGATIVE_INFINITY;
  for (const { atMs, value } of points) {
    if (value === null || atMs < fromMs) continue;
    const x = round(((atMs - fromMs) / (toMs - fromMs)) * width);
    const y = round(height - (Math.min(value, top) / top) * height);
    // A point alone is a line of no length, which round ends make a dot.
    path += atMs - lastMs <= gapMs ? `L${x} ${y}` : `M${x} ${y}h0`;
    lastMs = atMs;
  }
  return path;
}

/** The largest value since `fromMs`; 0 where there is none. */
export function mostOf(lines: readonly (readonly Point[])[], fromMs: number): number {
  const values = lines.flat().filter(({ atMs }) => atMs >= fromMs);
  return values.reduce((most, { value }) => Math.max(most, value ?? 0), 0);
}

/** The least of 1, 2 and 5 times a power of ten that is no less than `most` and `least`. */
export function decimalTop(most: number, least: number): number {
  const wanted = Math.max(most, least);
  const power = 10 ** Math.floor(Math.log10(wanted));
  return [1, 2, 5, 10].map((step) => step * power).find((top) => top >= wanted)!;
}

/** The least power of two that is no less than `most`, from 1 MiB on. */
export const binaryTop = (most: number): number =>
  2 ** Math.max(20, Math.ceil(Math.log2(Math.max(1, most))));

/** The time that a chart shows: enough for what there is, within ten minutes. */
export function spanOf(elapsedMs: number): number {
  const minutes = spanMinutes.find((each) => each * minuteMs >= elapsedMs);
  return (minutes ?? spanMinutes.at(-1)!) * minuteMs;
}

const round = (value: number): number => Math.round(value * 10) / 10;
