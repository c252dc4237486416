/** The flags of serving many streams, and of what is kept of their prompts. */
import { type Command, Option } from "commander";
import { InputError } from "../errors.ts";
import {
  decodeShareDefault,
  parallelDefault,
  promptCacheBytesDefault,
  queueRequestsMax,
  roundRowsMax,
} from "../limits.ts";
import type { OpenOptions } from "../node.ts";
import { gibValue, shareValue, wholeNumber } from "./values.ts";

const gib = 2 ** 30;

/** What stays of prompts, for later ones that begin alike. Sizes are in bytes. */
export interface CacheFlags {
  readonly promptCacheGib?: number;
  readonly spillGib: number;
  readonly spillDir?: string;
}

/** How many are served, and how they share the machine. */
export interface StreamFlags extends CacheFlags {
  readonly parallel: number | "auto";
  readonly kvGib?: number;
  readonly decodeShare: number;
}

/** The same, and how many may wait. */
export interface ServingFlags extends StreamFlags {
  readonly queue: number;
}

/** Adds the flags of `CacheFlags`. */
export function addCacheOptions(command: Command): Command {
  return command
    .addOption(
      new Option(
        "--prompt-cache-gib <n>",
        "memory for cached prompts; 0 caches none " +
          `(default: ${promptCacheBytesDefault / gib}, or none where that doesn't fit)`,
      ).argParser(gibValue),
    )
    .addOption(
      new Option("--spill-gib <n>", "disk for cached prompts that memory has no more room for")
        .argParser(gibValue)
        .default(0, "0, none"),
    )
    .addOption(
      new Option(
        "--spill-dir <folder>",
        "where these lie; they hold what prompts say (default: in the user's cache folder)",
      ),
    );
}

/** Adds the flags of `ServingFlags`. */
export function addServingOptions(command: Command): Command {
  return addStreamOptions(command).addOption(
    new Option("--queue <n>", "requests that may wait; more are refused with status 429")
      .argParser(wholeNumber(0, Number.MAX_SAFE_INTEGER))
      .default(queueRequestsMax),
  );
}

/** Adds the flags of `StreamFlags`. */
export function addStreamOptions(command: Command): Command {
  command
    .addOption(
      new Option(
        "--parallel <n>",
        `requests to serve at once, or auto: up to ${parallelDefault} that fit`,
      )
        .argParser((text) => (text === "auto" ? text : wholeNumber(1, roundRowsMax)(text)))
        .default("auto"),
    )
    .addOption(
      new Option(
        "--kv-gib <n>",
        "keys and values of all requests together, one whole context at least " +
          "(default: 4, or whole contexts for all where that is less)",
      ).argParser(gibValue),
    )
    .addOption(
      new Option(
        "--decode-share <s>",
        "share of the time that replies have while prompts are computed, 0 to below 1",
      )
        .argParser(shareValue)
        .default(decodeShareDefault),
    );
  return addCacheOptions(command);
}

/**
 * What the flags ask of an engine.
 * @throws InputError for a disk without a size, or without a cache that would use it
 */
export function cacheOptions(flags: CacheFlags): Partial<OpenOptions> {
  const { promptCacheGib: promptCacheBytes, spillGib: spillBytes, spillDir } = flags;
  if (spillDir !== undefined && spillBytes === 0) {
    throw new InputError("--spill-dir needs --spill-gib: how much may lie there.");
  }
  if (spillBytes > 0 && promptCacheBytes === 0) {
    throw new InputError("--spill-gib takes what --prompt-cache-gib has no room for, which is 0.");
  }
  return {
    ...(promptCacheBytes !== undefined && { promptCacheBytes }),
    spillBytes,
    ...(spillDir !== undefined && { spillFolder: spillDir }),
  };
}

/**
 * What the flags ask of an engine.
 * @throws InputError as `cacheOptions` does
 */
export function streamOptions(flags: StreamFlags): Partial<OpenOptions> {
  const { parallel, kvGib: kvBytes, decodeShare } = flags;
  return {
    parallel,
    ...(kvBytes !== undefined && { kvBytes }),
    decodeShare,
    ...cacheOptions(flags),
  };
}

/**
 * What the flags ask of an engine.
 * @throws InputError as `cacheOptions` does
 */
export const servingOptions = (flags: ServingFlags): Partial<OpenOptions> => ({
  ...streamOptions(flags),
  queueMax: flags.queue,
});
