/** How large a backend is opened: streams, pages, and what the prompt cache has of them. */
import type { BackendOptions, DrafterOptions } from "./backend/backend.ts";
import { InputError } from "./errors.ts";
import {
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

/** What the users of an engine may say of its size. */
export interface SizeOptions {
  /** Streams that are served at once; "auto", unless said: up to 8 that fit. */
  readonly parallel?: number | "auto";
  /**
   * Bytes of keys and values that streams have together, as f32; at least one whole context is there.
   * Unless said, 4 GiB, or what whole contexts of all streams take.
   */
  readonly kvBytes?: number;
  /**
   * Bytes of states and pages that stay for later prompts; 0: nothing is cached. Unless said 1 GiB, in a
   * browser 256 MiB, or nothing where that doesn't fit.
   */
  readonly promptCacheBytes?: number;
}

/** One way to open a backend. */
export interface OpenSizes {
  readonly slots: number;
  readonly pages: number;
  readonly promptCacheBytes: number;
}

/**
 * The sizes to try, the largest first; the next where one doesn't fit.
 * @param cacheBytesDefault of the prompt cache, unless the options say
 */
export function sizesToTry(
  { parallel = "auto", kvBytes: asked, promptCacheBytes: cacheAsked }: SizeOptions,
  cacheBytesDefault: number,
  pageBytes: number,
  contextTokens: number,
): OpenSizes[] {
  const kvBytes = asked ?? kvBytesDefault;
  checkBytes("kvBytes", kvBytes);
  checkBytes("promptCacheBytes", cacheAsked ?? 0);
  const contextPages = pagesFor(contextTokens);
  const kvPages = Math.max(contextPages, Math.floor(kvBytes / pageBytes));
  const cacheBytes = cacheAsked ?? cacheBytesDefault;
  // About half of the cache are states, which have memory of their own.
  const cachePages = (bytes: number) => Math.floor(bytes / 2 / pageBytes);
  const sizes = (slots: number, streamPages: number, promptCacheBytes: number) => ({
    slots,
    pages: streamPages + cachePages(promptCacheBytes),
    promptCacheBytes,
  });
  const counts = parallel === "auto" ? halves(parallelDefault) : [parallel];
  const pagesOf = (slots: number) => Math.min(slots * contextPages, kvPages);
  const least = (slots: number) => (asked === undefined ? contextPages : pagesOf(slots));
  const whole = counts.map((slots) => sizes(slots, pagesOf(slots), cacheBytes));
  // Where everything was asked for, there is nothing to leave out.
  if (asked !== undefined && cacheAsked !== undefined) return whole;
  return [...whole, ...counts.map((slots) => sizes(slots, least(slots), cacheAsked ?? 0))];
}

/** Bytes of a page's keys and values, the drafter's among them, as f32. */
export function pageBytesOf({ shape }: Weights, drafter: DrafterOptions | null): number {
  const { fullLayers, kvDim } = derivedSizes(shape);
  const draft = drafter?.weights.shape;
  const draftFloats = draft ? draft.layers.length * drafterSizes(draft).kvDim : 0;
  return 4 * 2 * pageRows * (fullLayers * kvDim + draftFloats);
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
