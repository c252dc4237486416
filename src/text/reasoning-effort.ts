/** What requests may ask for, from none at all to the most. */
export const reasoningEfforts = [
  "none",
  "minimal",
  "low",
  "medium",
  "high",
  "xhigh",
  "max",
] as const;

export type ReasoningEffort = (typeof reasoningEfforts)[number];

/** The levels that a template's source names; none where it doesn't read `reasoning_effort`. */
export function effortLevelsIn(source: string): ReasoningEffort[] {
  if (!source.includes("reasoning_effort")) return [];
  return reasoningEfforts.filter(
    (level) => level !== "none" && new RegExp(`(['"])${level}\\1`).test(source),
  );
}

/**
 * The template's variables for an effort: the nearest level that it names, the higher of two that are
 * as near. Templates that name none only hear that there is to be none.
 * @param asked null leaves it to the template
 */
export function effortKwargs(
  asked: ReasoningEffort | null,
  levels: readonly ReasoningEffort[],
): Readonly<Record<string, unknown>> {
  if (asked === null) return {};
  if (asked === "none") return { enable_thinking: false };
  const place = (level: ReasoningEffort) => reasoningEfforts.indexOf(level);
  const distance = (level: ReasoningEffort) => Math.abs(place(level) - place(asked));
  const [nearest] = levels.toSorted((a, b) => distance(a) - distance(b) || place(b) - place(a));
  return { ...(nearest && { reasoning_effort: nearest }), enable_thinking: true };
}
