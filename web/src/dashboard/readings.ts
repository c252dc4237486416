import type { Health } from "../api/server.ts";
import type { Samples } from "./exposition.ts";

/** What the dashboard shows of a moment. Null: the server doesn't tell, or there is nothing to tell. */
export interface Reading {
  readonly atMs: number;
  readonly running: number | null;
  readonly waiting: number | null;
  readonly slots: number | null;
  /** A second, since the moment before. */
  readonly replyTokensPerSecond: number | null;
  /** The same of prompt tokens that were computed, not found in the cache. */
  readonly promptTokensPerSecond: number | null;
  /** Share of the prompt tokens since the moment before. */
  readonly cachedShare: number | null;
  /** Share of the drafts since the moment before. */
  readonly acceptedShare: number | null;
  readonly tokensPerRound: number | null;
  /** Share of the pages of keys and values. */
  readonly kvShare: number | null;
  readonly promptCacheBytes: number | null;
  /** Memory of the server's process. */
  readonly residentBytes: number | null;
}

/** What was read at a moment. */
export interface Poll {
  readonly atMs: number;
  readonly samples: Samples;
  readonly health: Health | null;
}

const prefix = "deltafold_";

/** @param before null: nothing was read before */
export function readingOf(before: Poll | null, now: Poll): Reading {
  const value = (name: string) => now.samples.get(prefix + name) ?? null;
  const rise = (name: string) => (before ? riseOf(before, now, prefix + name) : null);
  const seconds = before ? (now.atMs - before.atMs) / 1000 : 0;
  const { health } = now;
  const prompt = rise("prompt_tokens_total");
  const cached = rise("prompt_tokens_cached_total");
  const generated = rise("generation_tokens_total");
  const computed = prompt === null || cached === null ? prompt : prompt - cached;
  return {
    atMs: now.atMs,
    running: value("requests_running") ?? health?.requests?.running ?? null,
    waiting: value("requests_waiting") ?? health?.requests?.waiting ?? null,
    slots: value("slots") ?? health?.slots ?? null,
    replyTokensPerSecond: over(generated, seconds),
    promptTokensPerSecond: over(computed, seconds),
    cachedShare: over(cached, prompt),
    acceptedShare: over(rise("draft_accepted_tokens_total"), rise("draft_tokens_total")),
    tokensPerRound: over(generated, rise("decode_rounds_total")),
    kvShare: value("kv_cache_usage_ratio"),
    promptCacheBytes: value("prompt_cache_bytes") ?? health?.prompt_cache?.bytes ?? null,
    residentBytes: value("process_resident_bytes"),
  };
}

/** By how much a counter rose; null where it isn't told, or began anew with its server. */
function riseOf(before: Poll, now: Poll, name: string): number | null {
  const from = before.samples.get(name);
  const to = now.samples.get(name);
  return from === undefined || to === undefined || to < from ? null : to - from;
}

const over = (part: number | null, whole: number | null): number | null =>
  part === null || !whole ? null : part / whole;
