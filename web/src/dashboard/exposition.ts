/** Metrics in Prometheus's text format, as far as the dashboard reads them. */

/** Values by metric, those of its label sets added up. */
export type Samples = ReadonlyMap<string, number>;

/** A sample: name, labels if there are any, value, and perhaps a time. */
const sample = /^([a-zA-Z_:][\w:]*)(?:\{.*\})?[ \t]+(\S+)(?:[ \t]+-?\d+)?\s*$/;

const words: ReadonlyMap<string, number> = new Map([
  ["+Inf", Number.POSITIVE_INFINITY],
  ["Inf", Number.POSITIVE_INFINITY],
  ["-Inf", Number.NEGATIVE_INFINITY],
]);

/** What can't be read, and what isn't a number, is passed over. */
export function readSamples(text: string): Samples {
  const samples = new Map<string, number>();
  for (const line of text.split("\n")) {
    const [, name, written] = sample.exec(line) ?? [];
    if (name === undefined || written === undefined) continue;
    const value = words.get(written) ?? Number(written);
    if (!Number.isNaN(value)) samples.set(name, (samples.get(name) ?? 0) + value);
  }
  return samples;
}
