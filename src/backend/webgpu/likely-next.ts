import { windowRowsMax } from "../../limits.ts";
import type { Plan, Segment } from "../../model/plan.ts";

/**
 * Plans with the counts of the rounds that are likely to follow: the same streams with as many rows, from
 * where they have got to. Their ids and pages say nothing. None after a prompt's chunk of more rows than
 * a round's, whose counts seldom come again.
 */
export function likelyNext(plan: Plan): Plan[] {
  if (plan.segments.some(({ rows }) => rows > windowRowsMax)) return [];
  const all = movedOn(plan, ({ rows }) => rows);
  if (!plan.segments.some(({ window }) => window)) return [all];
  // How many rows of a window are kept is not known yet, but a round keeps one at least: where one and all
  // make different counts, every number between them makes one of the two.
  return [movedOn(plan, ({ rows, window }) => (window ? 1 : rows)), all];
}

const movedOn = (plan: Plan, by: (segment: Segment) => number): Plan => ({
  ...plan,
  segments: plan.segments.map((segment) => ({ ...segment, start: segment.start + by(segment) })),
});
