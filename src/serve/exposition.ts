/** Prometheus' text format 0.0.4, and what is counted for it. */

export const expositionType = "text/plain; version=0.0.4; charset=utf-8";

export type Labels = Readonly<Record<string, string>>;

export interface Sample {
  readonly labels: Labels;
  readonly value: number;
  /** What its name has behind the family's. */
  readonly suffix?: string;
}

/** Samples of one name. */
export interface Family {
  readonly name: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  readonly samples: readonly Sample[];
}

/** @returns the text of all families; those without samples have no line */
export function exposition(families: readonly Family[]): string {
  return families
    .filter(({ samples }) => samples.length > 0)
    .map(familyText)
    .join("");
}

function familyText({ name, type, help, samples }: Family): string {
  const helpText = help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
  const lines = samples.map(
    ({ suffix = "", labels, value }) => `${name}${suffix}${labelText(labels)} ${value}\n`,
  );
  return `# HELP ${name} ${helpText}\n# TYPE ${name} ${type}\n${lines.join("")}`;
}

function labelText(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => {
    const escaped = value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
    return `${name}="${escaped}"`;
  });
  return pairs.length > 0 ? `{${pairs.join(",")}}` : "";
}

/** Counts by labels. Whoever adds must have few different ones. */
export class LabelledCounter {
  readonly #samples = new Map<string, { readonly labels: Labels; value: number }>();

  add(labels: Labels): void {
    const key = JSON.stringify(labels);
    const sample = this.#samples.get(key);
    if (sample) sample.value++;
    else this.#samples.set(key, { labels, value: 1 });
  }

  get samples(): readonly Sample[] {
    return [...this.#samples.values()];
  }
}

/** How often values were at most so large. */
export class Histogram {
  readonly #bounds: readonly number[];
  /** Of each bound, what lies above the bound before it; the last is of no bound. */
  readonly #counts: number[];
  #sum = 0;

  /** @param bounds ascending */
  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = Array.from({ length: bounds.length + 1 }, () => 0);
  }

  observe(value: number): void {
    const at = this.#bounds.findIndex((bound) => value <= bound);
    this.#counts[at < 0 ? this.#bounds.length : at]!++;
    this.#sum += value;
  }

  samples(labels: Labels): Sample[] {
    let count = 0;
    const buckets = this.#counts.map((each, at): Sample => {
      count += each;
      const le = String(this.#bounds[at] ?? "+Inf");
      return { suffix: "_bucket", labels: { ...labels, le }, value: count };
    });
    const sum = { suffix: "_sum", labels, value: this.#sum };
    return [...buckets, sum, { suffix: "_count", labels, value: count }];
  }
}
