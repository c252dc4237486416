import { invariant } from "../errors.ts";
import type { StepTensors } from "./tensors.ts";
import type { Matrix } from "./weights.ts";

/** Finds tensors by their paths; vectors are read when they are asked for. */
export function tensorsByPath(
  matrices: ReadonlyMap<string, Matrix>,
  vectors: ReadonlyMap<string, () => Promise<Float32Array>>,
): StepTensors {
  return {
    matrix(path) {
      const matrix = matrices.get(path);
      invariant(matrix !== undefined, `no matrix ${path}`);
      return matrix;
    },
    async vector(path) {
      const read = vectors.get(path);
      invariant(read !== undefined, `no vector ${path}`);
      return await read();
    },
  };
}
