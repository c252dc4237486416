import type { ResumeStep } from "./resume-script.ts";

/** What is said of cached tokens. */
export type CacheClaim =
  /** As many as could be known. */
  | "exact"
  /** Of these, some that a file isn't read for may be missing. */
  | "nearly"
  /** At least what was there before the reply before. */
  | "atOnce"
  /** No more than could be known. */
  | "atMost"
  /** Nothing: another process knew more. */
  | "any";

/** A state on disk that saves fewer tokens than this is not read. */
const spillGainRows = 256;

/** What is wrong with the number of a step's tokens that were cached; null for nothing. */
export function wrongClaim(
  claim: CacheClaim,
  { promptIds, known, knownAtOnce }: ResumeStep,
  cached: number,
): string | null {
  const least = {
    exact: known,
    nearly: known - spillGainRows + 1,
    atOnce: knownAtOnce,
    atMost: 0,
    any: 0,
  }[claim];
  const most = claim === "any" ? promptIds.length - 1 : known;
  if (cached > most) return `${cached} tokens were cached, of ${most} that could be known`;
  return cached < least ? `${cached} tokens were cached, not ${least}` : null;
}
