import type { Checkpoint } from "../checkpoint/checkpoint.ts";
import { InvariantError } from "../errors.ts";
import type { ModelShape } from "../model/shape.ts";
import { type ConvertJob, castJob, matrixJob, vectorJob } from "./convert-jobs.ts";
import { moduleFormats, type Recipe } from "./convert-recipe.ts";
import { weightsFromCheckpoint } from "./from-checkpoint.ts";
import { matrixRoles, type VectorRole, vectorRoles } from "./roles.ts";
import type { Matrix } from "./weights.ts";

/** A model to be converted, in whatever files it lies. */
export interface ModelSource {
  /** For error messages. */
  readonly name: string;
  readonly shape: ModelShape;
  matrix(path: string): Matrix;
  /** What makes one of its small tensors. @param name the tensor's in the output */
  vectorJob(role: VectorRole, name: string): ConvertJob;
}

/**
 * The jobs that make an MLX-layout model.
 *
 * @throws InputError for a recipe that names no module of the model
 */
export function modelJobs(source: ModelSource, recipe: Recipe): readonly ConvertJob[] {
  const roles = matrixRoles(source.shape);
  const formats = moduleFormats(
    roles.map(({ path }) => path),
    recipe,
  );
  return [
    ...roles.map(({ path }) =>
      matrixJob(mlxName(path), source.name, source.matrix(path), formats.get(path) ?? null),
    ),
    ...vectorRoles(source.shape).map((role) => source.vectorJob(role, mlxName(role.tensor))),
  ];
}

/** @throws CheckpointError naming the tensor that is missing, wrong or without a place */
export async function checkpointSource(checkpoint: Checkpoint): Promise<ModelSource> {
  const weights = await weightsFromCheckpoint(checkpoint);
  return {
    name: checkpoint.folder.name,
    shape: weights.shape,
    matrix: weights.matrix,
    vectorJob(role, name) {
      if (role.kind === "centred" && checkpoint.layout === "hf") {
        return vectorJob(name, "bf16", role.shape, () => weights.vector(role.path));
      }
      const tensor = checkpoint.tensors.get(role.tensor);
      if (tensor === undefined) throw new InvariantError(`${role.tensor} was not checked`);
      const keepF32 = role.path.endsWith(".A_log");
      return castJob(name, mlxShape(role), tensor, { keepF32 });
    },
  };
}

/** A small tensor's shape in the MLX layout. */
export function mlxShape({ kind, shape }: VectorRole): readonly number[] {
  return kind === "conv" ? [...shape, 1] : shape;
}

function mlxName(name: string): string {
  return name.startsWith("lm_head") ? `language_model.${name}` : `language_model.model.${name}`;
}
