import type { Checkpoint } from "../checkpoint/checkpoint.ts";
import type { StoredTensor } from "../checkpoint/tensors.ts";
import { InputError, InvariantError } from "../errors.ts";
import type { AffineFormat } from "./affine.ts";
import { type ConvertJob, castJob, quantizeJob, vectorJob } from "./convert-jobs.ts";
import { weightsFromCheckpoint } from "./from-checkpoint.ts";
import { matrixRoles, type VectorRole, vectorRoles } from "./roles.ts";
import type { Weights } from "./weights.ts";

/**
 * The jobs that make an MLX-layout model of an open checkpoint of floats.
 *
 * @throws InputError when the checkpoint is quantised already
 */
export async function modelJobs(
  checkpoint: Checkpoint,
  format: AffineFormat,
): Promise<readonly ConvertJob[]> {
  if (checkpoint.config.quantization !== null) {
    throw new InputError(
      `${checkpoint.folder.name} is quantised already; convert from the original floats`,
    );
  }
  const weights = await weightsFromCheckpoint(checkpoint);
  const { shape } = weights;
  return [
    ...matrixRoles(shape).map((role) => matrixJob(checkpoint, weights, role.path, format)),
    ...vectorRoles(shape).map((role) => smallJob(checkpoint, weights, role)),
  ];
}

function matrixJob(
  checkpoint: Checkpoint,
  weights: Weights,
  path: string,
  format: AffineFormat,
): ConvertJob {
  const matrix = weights.matrix(path);
  const tensor = checkedTensor(checkpoint, `${path}.weight`);
  if (matrix.kind !== "dense") throw new InvariantError(`${path} is quantised`);
  if (matrix.cols % format.groupSize === 0) {
    return quantizeJob(mlxName(path), tensor.file, matrix, format);
  }
  const kept = castJob(mlxName(`${path}.weight`), tensor.shape, tensor, { keepF32: false });
  return { ...kept, matrix: "kept" };
}

function smallJob(checkpoint: Checkpoint, weights: Weights, role: VectorRole): ConvertJob {
  const name = mlxName(role.tensor);
  if (role.kind === "centred" && checkpoint.layout === "hf") {
    return vectorJob(name, role.shape, () => weights.vector(role.path));
  }
  const shape = role.kind === "conv" ? [...role.shape, 1] : role.shape;
  const tensor = checkedTensor(checkpoint, role.tensor);
  return castJob(name, shape, tensor, { keepF32: role.path.endsWith(".A_log") });
}

function mlxName(name: string): string {
  return name.startsWith("lm_head") ? `language_model.${name}` : `language_model.model.${name}`;
}

function checkedTensor(checkpoint: Checkpoint, name: string): StoredTensor {
  const tensor = checkpoint.tensors.get(name);
  if (tensor === undefined) throw new InvariantError(`${name} was not checked`);
  return tensor;
}
