/** A reader of Prometheus' text format that takes nothing else. */
import type { Hono } from "hono";

const namePattern = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const helpPattern = /^# HELP (\S+) (.+)$/;
const typePattern = /^# TYPE (\S+) (counter|gauge|histogram)$/;
const samplePattern =
  /^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)*\})? (\S+)$/;
const suffixes = ["_bucket", "_sum", "_count"];

/** Every sample by its name and labels, as they are written. */
export type Samples = ReadonlyMap<string, number>;

/**
 * @throws for a line that the format doesn't have, a sample apart from its family, one that comes twice, or a
 *   value that is no number
 */
export function readSamples(text: string): Samples {
  const samples = new Map<string, number>();
  const families = new Set<string>();
  let family = { name: "", type: "" };
  const lines = text.split("\n");
  if (lines.pop() !== "") throw new Error("the last line has no end");
  for (const line of lines) {
    const [, helped] = helpPattern.exec(line) ?? [];
    const [, typed, type] = typePattern.exec(line) ?? [];
    if (helped !== undefined) {
      if (families.has(helped) || !namePattern.test(helped)) throw new Error(line);
      families.add(helped);
      family = { name: helped, type: "" };
    } else if (typed !== undefined) {
      if (typed !== family.name || family.type !== "") throw new Error(line);
      family = { name: typed, type: type! };
    } else readSample(line, family, samples);
  }
  return samples;
}

function readSample(
  line: string,
  family: { readonly name: string; readonly type: string },
  samples: Map<string, number>,
): void {
  const [, name, labels = "", written] = samplePattern.exec(line) ?? [];
  if (name === undefined) throw new Error(line);
  const names =
    family.type === "histogram" ? suffixes.map((suffix) => family.name + suffix) : [family.name];
  const value = Number(written);
  const key = name + labels;
  if (!names.includes(name) || !Number.isFinite(value) || samples.has(key)) throw new Error(line);
  if (family.type === "counter" && !name.endsWith("_total")) throw new Error(line);
  samples.set(key, value);
}

export async function metricsOf(app: Hono): Promise<Samples> {
  return readSamples(await (await app.request("/metrics")).text());
}
