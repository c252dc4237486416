import type { Reply } from "../stream.ts";

/** OpenAI's usage of a request: its prompt once, and every reply. */
export function usageOf(replies: readonly Reply[]): object {
  const [{ promptTokens, cachedTokens }] = replies as [Reply];
  const sum = (of: (reply: Reply) => number) => replies.reduce((all, each) => all + of(each), 0);
  const completionTokens = sum(({ ids }) => ids.length);
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    prompt_tokens_details: { cached_tokens: cachedTokens },
    completion_tokens_details: { reasoning_tokens: sum(({ reasoningTokens }) => reasoningTokens) },
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
