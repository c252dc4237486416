import { openCheckpoint } from "../checkpoint/checkpoint.ts";
import { configFile } from "../checkpoint/config-file.ts";
import { isDrafterFolder } from "../checkpoint/drafter-kind.ts";
import { parseJsonObject } from "../checkpoint/json.ts";
import type { ByteSource, Folder } from "../checkpoint/source.ts";
import { openTensors } from "../checkpoint/tensors.ts";
import { copyFiles } from "./convert-copy.ts";
import { drafterJobs } from "./convert-drafter.ts";
import type { ConvertJob } from "./convert-jobs.ts";
import { checkpointSource, modelJobs } from "./convert-model.ts";
import type { Recipe } from "./convert-recipe.ts";
import { openGgufModel } from "./gguf/model.ts";
import type { OutputFolder } from "./output.ts";

/** What can be converted: a checkpoint's or drafter's folder, or an open GGUF file. */
export type ConvertSource = Folder | ByteSource;

/** A source that is open and checked, and what is to be made of it. Close it after the jobs. */
export interface Conversion extends AsyncDisposable {
  readonly name: string;
  readonly jobs: readonly ConvertJob[];
  /** The fields of config.json, as the source has them. */
  readonly config: ReadonlyMap<string, unknown>;
  /** Writes what a model needs beside its weights and config. */
  writeCompanions(output: OutputFolder): Promise<void>;
}

/**
 * Opens a source; no matrix is read.
 *
 * @throws CheckpointError when it can't be read, InputError when the recipe does not fit it
 */
export async function openConversion(source: ConvertSource, recipe: Recipe): Promise<Conversion> {
  if (!("has" in source)) {
    const model = await openGgufModel(source);
    return {
      name: source.name,
      jobs: modelJobs(model, recipe),
      config: model.config,
      writeCompanions: model.writeCompanions,
      // Who opened the file closes it.
      async [Symbol.asyncDispose]() {},
    };
  }
  const shared = {
    name: source.name,
    writeCompanions: (to: OutputFolder) => copyFiles(source, to),
  };
  if (await isDrafterFolder(source)) {
    const files = await openTensors(source);
    return await opened(files.close, async () => ({
      ...shared,
      jobs: drafterJobs([...files.tensors.values()], recipe),
      config: await configOf(source),
    }));
  }
  const checkpoint = await openCheckpoint(source);
  return await opened(checkpoint.close, async () => ({
    ...shared,
    jobs: modelJobs(await checkpointSource(checkpoint), recipe),
    config: await configOf(source),
  }));
}

async function opened(
  close: () => Promise<void>,
  make: () => Promise<Omit<Conversion, typeof Symbol.asyncDispose>>,
): Promise<Conversion> {
  try {
    return { ...(await make()), [Symbol.asyncDispose]: close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function configOf(source: Folder): Promise<ReadonlyMap<string, unknown>> {
  return parseJsonObject(`${source.name}/${configFile}`, await source.text(configFile));
}
