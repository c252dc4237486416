import type { VNode } from "preact";
import { mostOf, type Point, pathOf } from "./chart-lines.ts";

const width = 600;
const height = 140;

export interface Series {
  readonly name: string;
  /** The oldest first. */
  readonly points: readonly Point[];
}

interface ChartProps {
  readonly title: string;
  readonly series: readonly Series[];
  /** The value of the upper edge, for the largest that is shown. */
  readonly top: (most: number) => number;
  readonly format: (value: number | null) => string;
  readonly fromMs: number;
  readonly toMs: number;
}

/** Lines over time, from 0 upwards. Their latest values stand beside them in words. */
export function Chart({ title, series, top: topFor, format, fromMs, toMs }: ChartProps): VNode {
  const top = topFor(
    mostOf(
      series.map(({ points }) => points),
      fromMs,
    ),
  );
  const frame = { fromMs, toMs, top, width, height };
  const latest = series.map(
    ({ name, points }) => `${name} ${format(points.at(-1)?.value ?? null)}`,
  );
  return (
    <figure class="chart">
      <figcaption>
        <h2>{title}</h2>
        <ul class="legend">
          {series.map(({ name }, at) => (
            <li key={name} class={`line-${at}`}>
              {latest[at]}
            </li>
          ))}
        </ul>
      </figcaption>
      <p class="edge">{format(top)}</p>
      <svg
        viewBox={`0 0 ${width} ${height}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${title}: ${latest.join(", ")}`}
      >
        {[0, 0.5, 1].map((share) => (
          <path key={share} class="grid" d={`M0 ${share * height}h${width}`} />
        ))}
        {series.map(({ name, points }, at) => (
          <path key={name} class={`line-${at}`} d={pathOf(points, frame)} />
        ))}
      </svg>
      <p class="edge times">
        <span>{Math.round((toMs - fromMs) / 60_000)} min ago</span>
        <span>now</span>
      </p>
    </figure>
  );
}
