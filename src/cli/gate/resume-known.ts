import type { TokenId } from "../../ids.ts";

/**
 * How many of a prompt's tokens could be known to be needed before it came: those that others have in
 * common with it. A prompt's last token is never among them, because a reply's first is drawn from it.
 * @param others prompts that came before, or might have come in its place; of none, nothing is known
 */
export function knownTokens(
  promptIds: readonly TokenId[],
  others: readonly (readonly TokenId[])[],
): number {
  if (others.length === 0) return 0;
  const most = Math.min(promptIds.length, ...others.map(({ length }) => length)) - 1;
  let rows = 0;
  while (rows < most && others.every((other) => other[rows] === promptIds[rows])) rows++;
  return rows;
}

/** The longest of what streams were fed that a prompt begins with and goes on from. */
export function fedTokens(
  promptIds: readonly TokenId[],
  fed: readonly (readonly TokenId[])[],
): number {
  const begins = fed.filter(
    (ids) => ids.length < promptIds.length && ids.every((id, row) => id === promptIds[row]),
  );
  return Math.max(0, ...begins.map(({ length }) => length));
}

/** The first token in which two replies differ; -1 for none. */
export function differsAt(expected: readonly TokenId[], actual: readonly TokenId[]): number {
  const most = Math.max(expected.length, actual.length);
  for (let at = 0; at < most; at++) if (expected[at] !== actual[at]) return at;
  return -1;
}
