import type { ReplyEvent } from "../engine.ts";
import type { Reply } from "../stream.ts";

/** How an endpoint writes a reply: whole, or as the data of events. */
export interface ReplyFormat {
  whole(reply: Reply): object;
  /** Before any part. */
  opening(): readonly object[];
  part(event: ReplyEvent): object;
  /** After every part. */
  closing(reply: Reply): readonly object[];
}

/** What the objects of one reply have in common. */
export interface ReplyHead {
  readonly id: string;
  /** Seconds since 1970. */
  readonly created: number;
  readonly model: string;
}

/** OpenAI's usage. Tokens of reasoning are not told apart, so they are absent. */
export function usageOf(reply: Reply): object {
  const completionTokens = reply.ids.length;
  return {
    prompt_tokens: reply.promptTokens,
    completion_tokens: completionTokens,
    total_tokens: reply.promptTokens + completionTokens,
    prompt_tokens_details: { cached_tokens: reply.cachedTokens },
  };
}

/** What deltafold adds to OpenAI's objects. */
export function extrasOf(reply: Reply): object {
  const { timings, cacheMiss } = reply;
  const { prefillMs, decodeMs, tokensPerSecond } = timings;
  return {
    stop_sequence: reply.stopSequence,
    token_sha: reply.tokenSha,
    timings: {
      prefill_ms: prefillMs,
      decode_ms: decodeMs,
      ...(tokensPerSecond !== null && { tokens_per_second: tokensPerSecond }),
      ...(cacheMiss !== null && { cache_miss_reason: cacheMiss }),
    },
    speculative: speculativeOf(reply),
  };
}

/** What drafting did for a reply. */
export function speculativeOf({ speculative }: Reply): object {
  const { rounds, drafted, accepted, tokensPerRound, byDrafter } = speculative;
  return { rounds, drafted, accepted, tokens_per_round: tokensPerRound, by_drafter: byDrafter };
}

const idLetters = "abcdefghijklmnopqrstuvwxyz234567";
const idLength = 24;

/** An id that nobody guesses: 120 random bits after the prefix. */
export function randomId(prefix: string): string {
  const bytes = crypto.getRandomValues(new Uint8Array(idLength));
  return prefix + Array.from(bytes, (byte) => idLetters[byte % idLetters.length]).join("");
}
