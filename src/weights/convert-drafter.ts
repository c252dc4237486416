import type { StoredTensor } from "../checkpoint/tensors.ts";
import { InputError } from "../errors.ts";
import type { AffineFormat } from "./affine.ts";
import { denseMatrix } from "./checkpoint-matrix.ts";
import { floatType } from "./checkpoint-tensor.ts";
import { type ConvertJob, castJob, quantizeJob } from "./convert-jobs.ts";

const weightSuffix = ".weight";

/**
 * The jobs that quantise a block drafter. Names stay; codebooks, convolution kernels and norms
 * (plain ones, not zero-centred) stay as they are.
 *
 * @throws InputError when the drafter is quantised already
 */
export function drafterJobs(
  tensors: Iterable<StoredTensor>,
  format: AffineFormat,
): readonly ConvertJob[] {
  return Array.from(tensors, (tensor) => {
    if (tensor.dtype === "U32") {
      throw new InputError(
        `${tensor.file}: ${tensor.name} is quantised already; convert from the original floats`,
      );
    }
    const [rows, cols] = tensor.shape;
    const isLinear = tensor.shape.length === 2 && tensor.name.endsWith(weightSuffix);
    const kept = castJob(tensor.name, tensor.shape, tensor, { keepF32: true });
    if (!isLinear || rows === undefined || cols === undefined) return kept;
    if (cols % format.groupSize === 0) {
      const path = tensor.name.slice(0, -weightSuffix.length);
      const matrix = denseMatrix({ path, rows, cols }, floatType(tensor), tensor);
      return quantizeJob(path, tensor.file, matrix, format);
    }
    return { ...kept, matrix: "kept" };
  });
}
