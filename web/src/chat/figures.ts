import type { Ending, Figures } from "../conversation/message.ts";
import { absent, countText, durationText, figureText, percentText } from "../shared/format.ts";

/** What stands under a reply: only what the server told. */
export function summaryOf(figures: Figures): string[] {
  const { tokensPerSecond, tokensPerRound, drafted, accepted, cachedTokens, promptTokens } =
    figures;
  const parts: (string | null)[] = [
    tokensPerSecond === undefined ? null : `${figureText(tokensPerSecond)} tok/s`,
    tokensPerRound === undefined ? null : `${figureText(tokensPerRound)} tokens a round`,
    drafted && accepted !== undefined ? `${percentText(accepted / drafted)} of drafts kept` : null,
    cachedTokens === undefined || promptTokens === undefined
      ? null
      : `${countText(cachedTokens)} of ${countText(promptTokens)} prompt tokens cached`,
  ];
  return parts.filter((part) => part !== null);
}

const missReasons: Readonly<Record<string, string>> = {
  off: "the cache is off",
  no_match: "no known prompt begins like this one",
  evicted: "it had to make room",
  no_drafter_context: "it was of a reply without drafts",
};

/** All that is known of a reply, as names and values. */
export function detailsOf(figures: Figures): readonly (readonly [name: string, value: string])[] {
  const { cacheMissReason: miss, drafted, accepted } = figures;
  const rows: readonly (readonly [name: string, value: string])[] = [
    ["Reply", tokensText(figures.replyTokens)],
    ["Of it thinking", tokensText(figures.reasoningTokens)],
    ["Prompt", tokensText(figures.promptTokens)],
    ["Of it cached", tokensText(figures.cachedTokens)],
    ["Not cached because", miss === undefined ? absent : (missReasons[miss] ?? miss)],
    ["Until the first token", durationText(figures.prefillMs)],
    ["From there to the end", durationText(figures.decodeMs)],
    ["Rounds", countText(figures.rounds)],
    ["Drafts kept", drafted ? `${countText(accepted)} of ${countText(drafted)}` : absent],
    ["Seed", figures.seed === undefined ? absent : String(figures.seed)],
    ["Fingerprint", figures.tokenSha ?? absent],
  ];
  return rows.filter(([, value]) => value !== absent);
}

const tokensText = (count: number | undefined): string =>
  count === undefined ? absent : `${countText(count)} tokens`;

/** A word on replies that ended otherwise than by themselves. */
export function endingNote(ending: Ending): string | null {
  if (ending === "length") return "Cut at the longest reply.";
  return ending === "stopped" ? "Stopped." : null;
}

/** The share of the context that a reply and its prompt took; null where it isn't known. */
export function contextShare(figures: Figures, contextTokens: number | null): number | null {
  const { promptTokens, replyTokens } = figures;
  if (!contextTokens || promptTokens === undefined || replyTokens === undefined) return null;
  return Math.min(1, (promptTokens + replyTokens) / contextTokens);
}
