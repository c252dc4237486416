import type { Served } from "./gate-loop.ts";

/** What the streams of a cell did. */
export type ReplyCounts = Record<"tokens" | "rounds" | "drafted" | "accepted", number>;

/** Summed over replies. */
export function countsOf(replies: readonly Served[]): ReplyCounts {
  const sum = { tokens: 0, rounds: 0, drafted: 0, accepted: 0 };
  for (const { ids, outcome } of replies) {
    sum.tokens += ids.length;
    sum.rounds += outcome.speculative.rounds;
    sum.drafted += outcome.speculative.drafted;
    sum.accepted += outcome.speculative.accepted;
  }
  return sum;
}

/** The counts in words. */
export const figuresOf = ({ tokens, rounds, drafted, accepted }: ReplyCounts): string =>
  `${tokens} tokens in ${rounds} rounds, ${accepted} of ${drafted} drafts`;
