import type { VNode } from "preact";
import { bytesText, countText, figureText, percentText } from "../shared/format.ts";
import { Chart } from "./chart.tsx";
import { binaryTop, decimalTop, spanOf } from "./chart-lines.ts";
import type { Reading } from "./readings.ts";

type FigureName = Exclude<keyof Reading, "atMs">;

interface ChartSpec {
  readonly title: string;
  readonly lines: readonly (readonly [name: string, figure: FigureName])[];
  /** The value of the upper edge, for the largest that is shown. */
  readonly top: (most: number) => number;
  readonly format: (value: number | null) => string;
}

const specs: readonly ChartSpec[] = [
  {
    title: "Tokens a second",
    lines: [
      ["replies", "replyTokensPerSecond"],
      ["prompts", "promptTokensPerSecond"],
    ],
    top: (most) => decimalTop(most, 10),
    format: figureText,
  },
  {
    title: "Requests",
    lines: [
      ["running", "running"],
      ["waiting", "waiting"],
      ["slots", "slots"],
    ],
    top: (most) => decimalTop(most, 1),
    format: countText,
  },
  {
    title: "Drafts and caches",
    lines: [
      ["drafts kept", "acceptedShare"],
      ["prompt tokens cached", "cachedShare"],
      ["keys and values in use", "kvShare"],
    ],
    top: () => 1,
    format: percentText,
  },
  {
    title: "Tokens a round",
    lines: [["all replies", "tokensPerRound"]],
    top: (most) => decimalTop(most, 2),
    format: figureText,
  },
  {
    title: "Memory",
    lines: [
      ["process", "residentBytes"],
      ["prompt cache", "promptCacheBytes"],
    ],
    top: binaryTop,
    format: bytesText,
  },
];

/** The figures over time. */
export function Charts({ readings }: { readings: readonly Reading[] }): VNode {
  const toMs = readings.at(-1)?.atMs ?? 0;
  const spanMs = spanOf(toMs - (readings[0]?.atMs ?? 0));
  return (
    <>
      {specs.map(({ title, lines, top, format }) => (
        <Chart
          key={title}
          title={title}
          series={lines.map(([name, figure]) => ({
            name,
            points: readings.map((reading) => ({ atMs: reading.atMs, value: reading[figure] })),
          }))}
          top={top}
          format={format}
          fromMs={toMs - spanMs}
          toMs={toMs}
        />
      ))}
    </>
  );
}
