import type { StoredTensor } from "../checkpoint/tensors.ts";
import { InputError } from "../errors.ts";
import { denseMatrix } from "./checkpoint-matrix.ts";
import { floatType } from "./checkpoint-tensor.ts";
import { type ConvertJob, castJob, matrixJob } from "./convert-jobs.ts";
import { moduleFormats, type Recipe } from "./convert-recipe.ts";

const weightSuffix = ".weight";

/**
 * The jobs that quantise a block drafter. Names stay; codebooks, convolution kernels and norms
 * (plain ones, not zero-centred) stay as they are.
 *
 * @throws InputError when the drafter is quantised already
 */
export function drafterJobs(
  tensors: readonly StoredTensor[],
  recipe: Recipe,
): readonly ConvertJob[] {
  const packed = tensors.find(({ dtype }) => dtype === "U32");
  if (packed !== undefined) {
    throw new InputError(
      `${packed.file}: ${packed.name} is quantised already; convert from the original floats`,
    );
  }
  const paths = tensors.filter(isLinear).map(pathOf);
  const formats = moduleFormats(paths, recipe);
  return tensors.map((tensor) => {
    if (!isLinear(tensor)) return castJob(tensor.name, tensor.shape, tensor, { keepF32: true });
    const path = pathOf(tensor);
    const [rows = 0, cols = 0] = tensor.shape;
    const matrix = denseMatrix({ path, rows, cols }, floatType(tensor), tensor);
    return matrixJob(path, tensor.file, matrix, formats.get(path) ?? null);
  });
}

const isLinear = ({ name, shape }: StoredTensor): boolean =>
  shape.length === 2 && name.endsWith(weightSuffix);

const pathOf = ({ name }: StoredTensor): string => name.slice(0, -weightSuffix.length);
