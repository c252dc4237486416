/** How large a backend is opened: its context, streams, pages, and what the prompt cache has of them. */
import type { BackendOptions, DrafterOptions } from "./backend/backend.ts";
import { mostThatFits } from "./backend/what-fits.ts";
import { InputError } from "./errors.ts";
import {
  contextTokensEnough,
  contextTokensLeast,
  kvBytesDefault,
  pageRows,
  parallelDefault,
  promptChunkRows,
  roundRowsMax,
  windowRowsMax,
} from "./limits.ts";
import { drafterSizes } from "./model/drafter-shape.ts";
import { derivedSizes } from "./model/shape.ts";
import { pagesFor } from "./state/kv-pages.ts";
import type { Weights } from "./weights/weights.ts";

export type KvType = "f32" | "f16";

/** What the users of an engine may say of its size. */
export interface SizeOptions {
  /** Prompt and reply together; unless said, the most that fit, up to what the model supports. */
  readonly contextTokens?: number;
  /** Streams that are served at once; "auto", unless said: up to 8 that fit. */
  readonly parallel?: number | "auto";
  /**
   * Bytes of keys and values that streams have together; at least one whole context is there. Unless said,
   * 4 GiB, or what whole contexts of all streams take.
   */
  readonly kvBytes?: number;
  /**
   * Bytes of states and pages that stay for later prompts; 0: nothing is cached. Unless said 1 GiB, in a
   * browser 256 MiB, or nothing where that doesn't fit.
   */
  readonly promptCacheBytes?: number;
  /** Bytes that all of this may take. Unless said, what the machine has free; what a GPU has, nobody knows. */
  readonly memoryBytes?: number;
  /** How keys and values are stored: f32 unless said, or f16 with the backend webgpu. */
  readonly kv?: KvType;
}

/** One way to open a backend. */
export interface OpenSizes {
  readonly contextTokens: number;
  readonly slots: number;
  readonly pages: number;
  readonly promptCacheBytes: number;
}

/** What sizes are chosen by, beside what the user says. */
export interface Sizing {
  /** What the model supports. */
  readonly contextMax: number;
  /** Bytes of a page's keys and values. */
  readonly pageBytes: number;
  /** Unless the user says. */
  readonly promptCacheBytes: number;
  /** Unless the user says; 4 GiB where nobody does. */
  readonly kvBytes?: number;
  /** Whether it is known how much memory there is. */
  readonly knowsRoom: boolean;
  /** Whether a default has room; null: only opening a backend tells. */
  readonly fits: ((sizes: OpenSizes) => Promise<boolean>) | null;
}

/** A way to open a backend, but for its context. */
interface Form {
  /** It has pages for several contexts, which are worth less than the largest one. */
  readonly generous: boolean;
  of(contextTokens: number): OpenSizes;
}

/**
 * The sizes to try, the best first; the next where one doesn't fit. Where memory is short, streams share the
 * pages of one context, then there are fewer of them, then no prompts are cached. Without a context that
 * was asked for, it is the largest that fits: where the model supports more than 32,768 tokens, what lies
 * above is cut first.
 * @throws InputError for a size that is none
 */
export async function* sizesToTry(
  options: SizeOptions,
  sizing: Sizing,
): AsyncGenerator<OpenSizes, void> {
  const forms = formsOf(options, sizing);
  const { contextTokens: asked } = options;
  if (asked !== undefined) {
    for (const form of forms) yield form.of(asked);
    return;
  }
  const limit = contextLimit(options, sizing);
  const { index, contextTokens } = await largestContext(forms, limit, sizing);
  for (const form of forms.slice(index)) yield form.of(contextTokens);
  // What fits is known only now, where nobody knows how much memory there is.
  const least = forms.at(-1)!;
  for (let less = contextTokens / 2; less >= contextTokensLeast; less /= 2) {
    yield least.of(Math.floor(less));
  }
}

/** The most tokens that may be the context unless it is asked for; 4096 however small `kvBytes` is. */
function contextLimit(
  { kvBytes: asked }: SizeOptions,
  { contextMax, pageBytes, kvBytes = kvBytesDefault, knowsRoom }: Sizing,
): number {
  const most = asked ?? (knowsRoom ? Number.POSITIVE_INFINITY : kvBytes);
  const tokens = pageRows * Math.floor(most / pageBytes);
  return Math.min(contextMax, Math.max(contextTokensLeast, tokens));
}

/** The first form that has room for a context that is large enough, or the one with the largest. */
async function largestContext(
  forms: readonly Form[],
  limit: number,
  { fits }: Sizing,
): Promise<{ readonly index: number; readonly contextTokens: number }> {
  // Where not even a page fits, the smallest backend says so best.
  let best = { index: forms.length - 1, contextTokens: Math.min(limit, pageRows) };
  if (!fits) return { index: 0, contextTokens: limit };
  for (const [index, form] of forms.entries()) {
    if (form.generous) {
      if (await fits(form.of(limit))) return { index, contextTokens: limit };
      continue;
    }
    const tokensOf = (pages: number) => Math.min(limit, pages * pageRows);
    const pages = await mostThatFits(pagesFor(limit), (count) => fits(form.of(tokensOf(count))));
    const contextTokens = tokensOf(pages);
    if (contextTokens >= Math.min(limit, contextTokensEnough)) return { index, contextTokens };
    if (contextTokens > best.contextTokens) best = { index, contextTokens };
  }
  return best;
}

/** The ways to open a backend, the largest first. */
function formsOf(
  { parallel = "auto", kvBytes: asked, promptCacheBytes: cacheAsked, memoryBytes }: SizeOptions,
  { pageBytes, promptCacheBytes, kvBytes: kvDefault = kvBytesDefault }: Sizing,
): Form[] {
  const kvBytes = asked ?? kvDefault;
  checkBytes("kvBytes", kvBytes);
  checkBytes("promptCacheBytes", cacheAsked ?? 0);
  checkBytes("memoryBytes", memoryBytes ?? 0);
  const cacheBytes = cacheAsked ?? promptCacheBytes;
  // About half of the cache are states, which have memory of their own.
  const cachePages = (bytes: number) => Math.floor(bytes / 2 / pageBytes);
  const pagesOf = (slots: number, contextPages: number) =>
    Math.max(contextPages, Math.min(slots * contextPages, Math.floor(kvBytes / pageBytes)));
  const form = (slots: number, cached: number, whole: boolean): Form => ({
    generous: whole && asked === undefined,
    of(contextTokens) {
      const contextPages = pagesFor(contextTokens);
      const streamPages = whole ? pagesOf(slots, contextPages) : contextPages;
      const pages = streamPages + cachePages(cached);
      return { contextTokens, slots, pages, promptCacheBytes: cached };
    },
  });
  const counts = parallel === "auto" ? halves(parallelDefault) : [parallel];
  // What was asked for is never left out.
  const shares = asked === undefined ? [true, false] : [true];
  const caches = cacheAsked === undefined ? [cacheBytes, 0] : [cacheBytes];
  return caches.flatMap((cached) =>
    counts.flatMap((slots) => shares.map((whole) => form(slots, cached, whole))),
  );
}

/** Bytes of a page's keys and values, the drafter's among them. */
export function pageBytesOf(
  { shape }: Weights,
  drafter: DrafterOptions | null,
  kv: KvType = "f32",
): number {
  const { fullLayers, kvDim } = derivedSizes(shape);
  const draft = drafter?.weights.shape;
  const draftFloats = draft ? draft.layers.length * drafterSizes(draft).kvDim : 0;
  return (kv === "f16" ? 2 : 4) * 2 * pageRows * (fullLayers * kvDim + draftFloats);
}

/** What a backend of such a size is opened with. */
export function backendSizes(
  weights: Weights,
  drafter: DrafterOptions | null,
  { slots, pages }: Pick<OpenSizes, "slots" | "pages">,
  drafts: boolean,
): BackendOptions {
  return {
    weights,
    drafter,
    slots,
    pages,
    rowsMax: Math.max(promptChunkRows, roundRowsMax),
    drawsMax: drafts ? Math.min(slots * windowRowsMax, roundRowsMax) : slots,
    taps: [],
  };
}

const halves = (most: number): number[] => (most < 1 ? [] : [most, ...halves(most / 2)]);

/** @throws InputError */
function checkBytes(name: string, value: number): void {
  if (Number.isFinite(value) && value >= 0) return;
  throw new InputError(`${name} must be a number of bytes, 0 or more, not ${value}.`);
}
