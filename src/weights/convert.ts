import { openCheckpoint } from "../checkpoint/checkpoint.ts";
import { configFile } from "../checkpoint/config-file.ts";
import { isDrafterFolder } from "../checkpoint/drafter-kind.ts";
import { parseJsonObject } from "../checkpoint/json.ts";
import {
  layoutSafetensors,
  type SafetensorsLayout,
  specBytes,
} from "../checkpoint/safetensors-layout.ts";
import type { Folder } from "../checkpoint/source.ts";
import { indexFile, openTensors, singleFile } from "../checkpoint/tensors.ts";
import { InputError } from "../errors.ts";
import type { AffineFormat } from "./affine.ts";
import { copyFiles } from "./convert-copy.ts";
import { drafterJobs } from "./convert-drafter.ts";
import type { ConvertJob } from "./convert-jobs.ts";
import { modelJobs } from "./convert-model.ts";
import type { OutputFile, OutputFolder } from "./output.ts";

export interface ConvertOptions extends AffineFormat {
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

/** What became of a checkpoint's matrices. */
export interface ConvertResult {
  readonly quantized: number;
  /** The columns of each matrix that kept its floats, as the group size does not divide them. */
  readonly keptColumns: readonly number[];
}

const shardBytesDefault = 5 * 10 ** 9;

/**
 * Writes an MLX-layout affine checkpoint of a Hugging Face checkpoint, or of a block drafter,
 * into `output`, and commits it. Whatever fails, the output is removed.
 *
 * A matrix whose columns the group size does not divide keeps its floats, as with MLX.
 *
 * @throws InputError when the source is quantised already, or nothing in it can be quantised
 * @throws CheckpointError when the source can't be read, DeltafoldError when writing fails
 */
export async function convertInto(
  source: Folder,
  output: OutputFolder,
  options: ConvertOptions,
): Promise<ConvertResult> {
  try {
    let result: ConvertResult;
    if (await isDrafterFolder(source)) {
      const files = await openTensors(source);
      try {
        const jobs = drafterJobs(files.tensors.values(), options);
        result = await writeAll(source, output, jobs, options);
      } finally {
        await files.close();
      }
    } else {
      await using checkpoint = await openCheckpoint(source);
      result = await writeAll(source, output, await modelJobs(checkpoint, options), options);
    }
    await output.commit();
    return result;
  } catch (error) {
    // The first fault is the one to tell, also where the removal fails too.
    await output.abort().catch(() => {});
    throw error;
  }
}

async function writeAll(
  source: Folder,
  output: OutputFolder,
  jobs: readonly ConvertJob[],
  options: ConvertOptions,
): Promise<ConvertResult> {
  const result = resultOf(jobs);
  if (result.quantized === 0) {
    const columns = [...new Set(result.keptColumns)].join(", ");
    throw new InputError(
      `group_size ${options.groupSize} divides the columns of no matrix in ${source.name}` +
        (columns === "" ? "" : ` (they have ${columns})`),
      "group_size",
    );
  }
  const shards = splitShards(jobs, options.shardBytes ?? shardBytesDefault);
  const totalBytes = jobs.reduce((sum, job) => sum + jobBytes(job), 0);
  let doneBytes = 0;
  const weightMap: [string, string][] = [];
  for (const [index, shard] of shards.entries()) {
    const path = shardName(index, shards.length);
    const specs = shard.flatMap((job) => job.tensors);
    const layout = layoutSafetensors(specs);
    const onBytes = (tensor: string, bytes: number) => {
      doneBytes += bytes;
      options.onProgress?.({ tensor, doneBytes, totalBytes });
      options.signal?.throwIfAborted();
    };
    await writeFile(output, path, (file) => writeShard(file, layout, shard, onBytes));
    for (const spec of specs) weightMap.push([spec.name, path]);
  }
  weightMap.sort(([a], [b]) => (a < b ? -1 : 1));
  const index = { metadata: { total_size: totalBytes }, weight_map: Object.fromEntries(weightMap) };
  await writeJson(output, indexFile, index);
  await writeJson(output, configFile, await quantizedConfig(source, options));
  await copyFiles(source, output);
  return result;
}

function resultOf(jobs: readonly ConvertJob[]): ConvertResult {
  const kept = jobs.filter((job) => job.matrix === "kept");
  return {
    quantized: jobs.filter((job) => job.matrix === "quantized").length,
    keptColumns: kept.map(({ tensors }) => tensors[0]?.shape[1] ?? 0),
  };
}

async function writeShard(
  file: OutputFile,
  layout: SafetensorsLayout,
  jobs: readonly ConvertJob[],
  onBytes: (tensor: string, bytes: number) => void,
): Promise<void> {
  await file.write(0, layout.header);
  for (const job of jobs) {
    await job.run(async (tensor, offset, bytes) => {
      const name = job.tensors[tensor]?.name ?? "";
      await file.write((layout.offsets.get(name) ?? 0) + offset, bytes);
      onBytes(name, bytes.length);
    });
  }
}

/** The source's config in its own form, with MLX's two quantisation objects. */
async function quantizedConfig(
  source: Folder,
  { bits, groupSize }: AffineFormat,
): Promise<unknown> {
  const fields = parseJsonObject(`${source.name}/${configFile}`, await source.text(configFile));
  const quantization = { group_size: groupSize, bits, mode: "affine" };
  return Object.fromEntries([
    ...fields,
    ["quantization", quantization],
    ["quantization_config", quantization],
  ]);
}

async function writeJson(output: OutputFolder, path: string, value: unknown): Promise<void> {
  const bytes = new TextEncoder().encode(`${JSON.stringify(value, null, 2)}\n`);
  await writeFile(output, path, (file) => file.write(0, bytes));
}

async function writeFile(
  output: OutputFolder,
  path: string,
  write: (file: OutputFile) => Promise<void>,
): Promise<void> {
  const file = await output.create(path);
  await write(file);
  await file.close();
}

function splitShards(jobs: readonly ConvertJob[], shardBytes: number): ConvertJob[][] {
  const shards: ConvertJob[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const job of jobs) {
    if (bytes + jobBytes(job) > shardBytes) {
      shards.push([]);
      bytes = 0;
    }
    shards.at(-1)?.push(job);
    bytes += jobBytes(job);
  }
  return shards;
}

function jobBytes(job: ConvertJob): number {
  return job.tensors.reduce((sum, spec) => sum + specBytes(spec), 0);
}

function shardName(index: number, count: number): string {
  if (count === 1) return singleFile;
  const padded = (value: number) => String(value).padStart(5, "0");
  return `model-${padded(index + 1)}-of-${padded(count)}.safetensors`;
}
