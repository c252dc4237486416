import type { Exchange } from "./exchange.ts";

/** A request that has ended, without anything that its client wrote but the path and the id. */
export interface RequestEntry {
  /** When it ended, in ISO 8601. */
  readonly time: string;
  readonly id: string;
  readonly method: string;
  readonly path: string;
  /** 499 where the client was gone before. */
  readonly status: number;
  /** From the request to the end of its reply. */
  readonly total_ms: number;
  /** What the server calls the key that it brought. */
  readonly key?: string;
  readonly prompt_tokens?: number;
  readonly cached_tokens?: number;
  readonly reply_tokens?: number;
  readonly first_token_ms?: number;
  readonly tokens_per_second?: number;
  /** Several replies' are joined by commas. */
  readonly finish_reason?: string;
  readonly error_code?: string;
}

/** Paths are cut to so many characters. */
const pathCharactersMax = 256;

/**
 * @param unixSeconds of its end, and `nowMs` of the clock by which it began
 */
export function entryOf(exchange: Exchange, unixSeconds: number, nowMs: number): RequestEntry {
  const { id, method, path, status, startMs, keyLabel, errorCode } = exchange;
  return {
    time: new Date(unixSeconds * 1000).toISOString().replace(".000", ""),
    id,
    method,
    path: path.slice(0, pathCharactersMax),
    status,
    total_ms: rounded(nowMs - startMs),
    ...(keyLabel !== null && { key: keyLabel }),
    ...repliesOf(exchange),
    ...(errorCode !== null && { error_code: errorCode }),
  };
}

function repliesOf({ streams, served }: Exchange): Partial<RequestEntry> {
  const [stream] = streams;
  if (!stream) return {};
  const { promptTokens: prompt_tokens } = stream;
  const replies = served.map(({ reply }) => reply);
  const [first] = replies;
  if (!first) return { prompt_tokens };
  const { prefillMs, tokensPerSecond } = first.timings;
  const begun = first.ids.length > 0;
  return {
    prompt_tokens,
    cached_tokens: first.cachedTokens,
    reply_tokens: replies.reduce((sum, { ids }) => sum + ids.length, 0),
    ...(begun && { first_token_ms: rounded(prefillMs) }),
    ...(tokensPerSecond !== null && { tokens_per_second: rounded(tokensPerSecond) }),
    finish_reason: replies.map(({ finishReason }) => finishReason).join(","),
  };
}

/** One line of JSON in ASCII, so that no terminal and no line reader is led astray. */
export function jsonLine(entry: RequestEntry): string {
  return JSON.stringify(entry).replace(/[^\x20-\x7e]/g, unicodeEscape);
}

/** One line for people: what is always there, then names and values. */
export function textLine(entry: RequestEntry): string {
  const { time, id, method, path, status, ...rest } = entry;
  const fixed = [time, id, method, path, String(status)].map(shownWord);
  const named = Object.entries(rest).map(([name, value]) => `${name}=${shownWord(String(value))}`);
  return [...fixed, ...named].join(" ");
}

/** Nothing of it can end a word, a line or a terminal's colour. */
const shownWord = (text: string): string => text.replace(/[^\x21-\x7e]/g, unicodeEscape);

const unicodeEscape = (unit: string): string =>
  `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;

const rounded = (value: number): number => Math.round(value * 10) / 10;
