/** Figures as the page writes them. What isn't there is a dash, never 0. */

/** For what the server doesn't tell. */
export const absent = "–";

const grouped = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const units = ["B", "KiB", "MiB", "GiB", "TiB"];

type Maybe = number | null | undefined;

/** 12,345 */
export const countText = (value: Maybe): string => write(value, (count) => grouped.format(count));

/** 0, 9.87, 98.7, 987 */
export const figureText = (value: Maybe): string =>
  write(value, (figure) => {
    if (figure >= 99.95 || figure === 0) return grouped.format(figure);
    return figure.toFixed(figure >= 9.995 ? 1 : 2);
  });

/** Of a share from 0 to 1. */
export const percentText = (value: Maybe): string =>
  write(value, (share) => `${(share * 100).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`);

export const bytesText = (value: Maybe): string =>
  write(value, (bytes) => {
    const step = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
    const scaled = bytes / 2 ** (10 * step);
    return `${step === 0 ? scaled : figureText(scaled)} ${units[step]}`;
  });

/** 850 ms, 12.3 s */
export const durationText = (value: Maybe): string =>
  write(value, (ms) => (ms < 1000 ? `${Math.round(ms)} ms` : `${figureText(ms / 1000)} s`));

function write(value: Maybe, written: (value: number) => string): string {
  return value === null || value === undefined || !Number.isFinite(value) ? absent : written(value);
}
