import { draftPrefix } from "../model/drafter-steps.ts";
import type { DrafterWeights } from "./drafter-weights.ts";
import type { Matrix, Weights } from "./weights.ts";

/** What the steps of a model and of its drafter name. */
export interface StepTensors {
  matrix(path: string): Matrix;
  vector(path: string): Promise<Float32Array>;
}

/** Finds the tensors of steps: those whose path begins with `draft.` are the drafter's. */
export function stepTensors(weights: Weights, drafter: DrafterWeights | null): StepTensors {
  const find = (path: string) =>
    drafter && path.startsWith(draftPrefix)
      ? { owner: drafter, own: path.slice(draftPrefix.length) }
      : { owner: weights, own: path };
  return {
    matrix(path) {
      const { owner, own } = find(path);
      return owner.matrix(own);
    },
    vector(path) {
      const { owner, own } = find(path);
      return owner.vector(own);
    },
  };
}
