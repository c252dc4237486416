import { configFile } from "../checkpoint/config-file.ts";
import { type Conversion, type ConvertSource, openConversion } from "./conversion.ts";
import { quantizedConfig } from "./convert-config.ts";
import {
  type ConvertSummary,
  checkQuantizes,
  planShards,
  type Shard,
  summarize,
} from "./convert-plan.ts";
import type { Recipe } from "./convert-recipe.ts";
import { writeJson, writeShards } from "./convert-write.ts";
import type { OutputFolder } from "./output.ts";

export interface ConvertOptions extends Recipe {
  /** Shards end before this many bytes; 5 GB unless given, as with MLX's tools. */
  readonly shardBytes?: number;
  /** Called after each block that was written. */
  readonly onProgress?: (progress: ConvertProgress) => void;
  /** Ends the conversion between two blocks; nothing is left of it. */
  readonly signal?: AbortSignal;
}

interface ConvertProgress {
  /** The output tensor that is being written. */
  readonly tensor: string;
  readonly doneBytes: number;
  readonly totalBytes: number;
}

/**
 * Writes an MLX-layout affine checkpoint of a model or of a block drafter into `output`, and commits
 * it. Whatever fails, the output is removed.
 *
 * @throws InputError when nothing would be quantised, or the recipe names what isn't there
 * @throws CheckpointError when the source can't be read, DeltafoldError when writing fails
 */
export async function convertInto(
  source: ConvertSource,
  output: OutputFolder,
  options: ConvertOptions,
): Promise<ConvertSummary> {
  try {
    await using conversion = await openConversion(source, options);
    checkQuantizes(conversion.name, conversion.jobs, options);
    const shards = planShards(conversion.jobs, options.shardBytes);
    const summary = summarize(conversion.jobs, shards.length);
    await writeAll(conversion, output, shards, summary, options);
    await output.commit();
    return summary;
  } catch (error) {
    // The first fault is the one to tell, also where the removal fails too.
    await output.abort().catch(() => {});
    throw error;
  }
}

/** What `convertInto` would write, by what the source's headers say. @throws as it does */
export async function describeConversion(
  source: ConvertSource,
  options: ConvertOptions,
): Promise<ConvertSummary> {
  await using conversion = await openConversion(source, options);
  checkQuantizes(conversion.name, conversion.jobs, options);
  return summarize(conversion.jobs, planShards(conversion.jobs, options.shardBytes).length);
}

async function writeAll(
  conversion: Conversion,
  output: OutputFolder,
  shards: readonly Shard[],
  { bytes: totalBytes }: ConvertSummary,
  options: ConvertOptions,
): Promise<void> {
  let doneBytes = 0;
  const onBytes = (tensor: string, bytes: number) => {
    doneBytes += bytes;
    options.onProgress?.({ tensor, doneBytes, totalBytes });
    options.signal?.throwIfAborted();
  };
  await writeShards(output, shards, onBytes);
  await writeJson(output, configFile, quantizedConfig(conversion.config, conversion.jobs, options));
  await conversion.writeCompanions(output);
}
