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
  /** From the request. */
  readonly first_token_ms?: number;
  readonly tokens_per_second?: number;
  /** Several replies' are joined by commas. */
  readonly finish_reason?: string;
  readonly error_code?: string;
}

/** What a server says beside its requests. */
export interface LogEntry {
  /** In ISO 8601. */
  readonly time: string;
  readonly level: "info" | "warning" | "error";
  readonly message: string;
  /** Where in the program a failure came from. */
  readonly stack?: string;
}

/** Paths are cut to so many characters. */
const pathCharactersMax = 256;

/**
 * @param unixSeconds of its end, and `nowMs` of the clock by which it began
 */
export function entryOf(exchange: Exchange, unixSeconds: number, nowMs: number): RequestEntry {
  const { id, method, path, status, startMs, key, errorCode } = exchange;
  return {
    time: timeText(unixSeconds),
    id,
    method,
    path: path.slice(0, pathCharactersMax),
    status,
    total_ms: rounded(nowMs - startMs),
    ...(key !== null && { key: key.label }),
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
  const { tokensPerSecond } = first.timings;
  const begun = first.ids.length > 0;
  return {
    prompt_tokens,
    cached_tokens: first.cachedTokens,
    reply_tokens: replies.reduce((sum, { ids }) => sum + ids.length, 0),
    ...(begun && { first_token_ms: rounded(served[0]!.firstTokenMs) }),
    ...(tokensPerSecond !== null && { tokens_per_second: rounded(tokensPerSecond) }),
    finish_reason: replies.map(({ finishReason }) => finishReason).join(","),
  };
}

/** Seconds since 1970 in ISO 8601. */
export const timeText = (unixSeconds: number): string =>
  new Date(unixSeconds * 1000).toISOString().replace(".000", "");

/** One line of JSON in ASCII, so that no terminal and no line reader is led astray. */
export function jsonLine(entry: RequestEntry | LogEntry): string {
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
