import type { PromptLogprob, TokenChance, TokenLogprob } from "../stream.ts";

/** OpenAI's logprobs of a chat's choice. */
export function chatLogprobs(tokens: readonly TokenLogprob[]): object {
  return { content: tokenLogprobs(tokens), refusal: null };
}

/** Each token's, and what else was likely at its place. */
export const tokenLogprobs = (tokens: readonly TokenLogprob[]): object[] =>
  tokens.map((token) => ({ ...chatToken(token), top_logprobs: token.top.map(chatToken) }));

function chatToken({ text, bytes, logprob }: TokenChance): object {
  return { token: text, logprob, bytes: [...bytes] };
}

/**
 * OpenAI's logprobs of a completion's choice: parallel lists. The likeliest tokens at each place are
 * named by their text, the token itself among them. A prompt's first token has no chance.
 * @param offset characters of the text before them
 */
export function completionLogprobs(tokens: readonly PromptLogprob[], offset: number): object {
  let at = offset;
  const text_offset = tokens.map(({ text }) => {
    const start = at;
    at += text.length;
    return start;
  });
  return {
    tokens: tokens.map(({ text }) => text),
    token_logprobs: tokens.map(({ logprob }) => logprob),
    top_logprobs: tokens.map(topByText),
    text_offset,
  };
}

function topByText({ text, logprob, top }: PromptLogprob): object | null {
  if (logprob === null || top.length === 0) return null;
  return Object.fromEntries([...top, { text, logprob }].map((each) => [each.text, each.logprob]));
}
