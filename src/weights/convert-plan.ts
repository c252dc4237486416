import {
  layoutSafetensors,
  type SafetensorsLayout,
  specBytes,
} from "../checkpoint/safetensors-layout.ts";
import { singleFile } from "../checkpoint/tensors.ts";
import { InputError } from "../errors.ts";
import type { ConvertJob, JobMatrix } from "./convert-jobs.ts";
import type { Recipe } from "./convert-recipe.ts";

/** What a conversion writes, or would write. */
export interface ConvertSummary {
  readonly kinds: readonly ConvertKind[];
  /** Matrices that stay as the source stores them. */
  readonly kept: readonly JobMatrix[];
  /** Parameters of all tensors. */
  readonly parameters: number;
  /** Bytes of all tensors. */
  readonly bytes: number;
  readonly shards: number;
}

/** Modules that are stored alike. */
export interface ConvertKind {
  /** Such as "4 bits, groups of 64"; "floats"; "norms and other small tensors". */
  readonly kind: string;
  readonly modules: number;
  readonly parameters: number;
  readonly bytes: number;
}

export interface Shard {
  readonly path: string;
  readonly jobs: readonly ConvertJob[];
  readonly layout: SafetensorsLayout;
}

const shardBytesDefault = 5 * 10 ** 9;

/** @param shardBytes a shard ends before this; 5 GB unless given, as with MLX's tools */
export function planShards(
  jobs: readonly ConvertJob[],
  shardBytes: number = shardBytesDefault,
): readonly Shard[] {
  const shards = splitShards(jobs, shardBytes);
  return shards.map((shard, index) => ({
    path: shardName(index, shards.length),
    jobs: shard,
    layout: layoutSafetensors(shard.flatMap((job) => job.tensors)),
  }));
}

export function summarize(jobs: readonly ConvertJob[], shards: number): ConvertSummary {
  const kinds = new Map<string, ConvertKind>();
  for (const job of jobs) {
    const kind = kindOf(job);
    const { modules, parameters, bytes } = kinds.get(kind) ?? {
      modules: 0,
      parameters: 0,
      bytes: 0,
    };
    kinds.set(kind, {
      kind,
      modules: modules + 1,
      parameters: parameters + parametersOf(job),
      bytes: bytes + jobBytes(job),
    });
  }
  const matrices = jobs.flatMap(({ matrix }) => (matrix === null ? [] : [matrix]));
  return {
    kinds: [...kinds.values()],
    kept: matrices.filter(({ fate }) => fate === "asked" || fate === "indivisible"),
    parameters: jobs.reduce((sum, job) => sum + parametersOf(job), 0),
    bytes: jobs.reduce((sum, job) => sum + jobBytes(job), 0),
    shards,
  };
}

/** @throws InputError where not one matrix would be quantised */
export function checkQuantizes(
  name: string,
  jobs: readonly ConvertJob[],
  { bits, groupSize }: Recipe,
): void {
  const matrices = jobs.flatMap(({ matrix }) => (matrix === null ? [] : [matrix]));
  if (matrices.some(({ fate }) => fate === "quantized")) return;
  if (matrices.some(({ fate }) => fate === "same")) {
    throw new InputError(`${name} is ${bits} bits in groups of ${groupSize} already`);
  }
  const columns = [...new Set(matrices.map(({ cols }) => cols))].join(", ");
  throw new InputError(
    `group_size ${groupSize} divides the columns of no matrix in ${name}` +
      (columns === "" ? "" : ` (they have ${columns})`),
    "group_size",
  );
}

function kindOf({ matrix }: ConvertJob): string {
  if (matrix === null) return "norms and other small tensors";
  if (matrix.format === null) return "floats";
  return `${matrix.format.bits} bits, groups of ${matrix.format.groupSize}`;
}

/** Of a quantised module, its codes alone. */
function parametersOf({ matrix, tensors }: ConvertJob): number {
  if (matrix !== null) return matrix.rows * matrix.cols;
  return tensors.reduce((sum, { shape }) => sum + shape.reduce((a, b) => a * b, 1), 0);
}

function jobBytes(job: ConvertJob): number {
  return job.tensors.reduce((sum, spec) => sum + specBytes(spec), 0);
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

function shardName(index: number, count: number): string {
  if (count === 1) return singleFile;
  const padded = (value: number) => String(value).padStart(5, "0");
  return `model-${padded(index + 1)}-of-${padded(count)}.safetensors`;
}
