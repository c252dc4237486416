import { forwardSteps, matrixPaths } from "../../model/forward.ts";
import type { BackendOptions } from "../backend.ts";
import type { DeltaWeights } from "./delta.ts";
import { readMatrix } from "./tensors.ts";

/** Every tensor of the model, widened to f32. */
export interface ReferenceTensors {
  /** [rows, cols]. */
  matrix(path: string): Float32Array;
  vector(path: string): Float32Array;
  delta(module: string): DeltaWeights;
  readonly bytes: number;
}

/** Bytes of the matrices once they are widened. */
export function referenceBytes({ weights }: BackendOptions): number {
  const paths = matrixPaths(weights.shape);
  const matrices = new Set(paths.map((path) => weights.matrix(path)));
  return [...matrices].reduce((sum, { rows, cols }) => sum + 4 * rows * cols, 0);
}

/** Reads the tensors that the forward pass names. */
export async function loadReference(options: BackendOptions): Promise<ReferenceTensors> {
  const { weights } = options;
  const matrices = new Map<string, Float32Array>();
  const vectors = new Map<string, Float32Array>();
  const steps = forwardSteps(weights.shape, []);
  const opened = new Map<object, Float32Array>();
  const matrix = async (path: string) => {
    const source = weights.matrix(path);
    // A tied head is the embedding's own matrix.
    const values = opened.get(source) ?? (await readMatrix(source));
    opened.set(source, values);
    matrices.set(path, values);
  };
  const vector = async (path: string) => {
    vectors.set(path, await weights.vector(path));
  };
  let done = 0;
  for (const step of steps) {
    if (step.op === "embed") await matrix(step.matrix);
    if (step.op === "project") for (const { matrix: path } of step.projections) await matrix(path);
    if (step.op === "norm" || step.op === "gatedNorm") await vector(step.weight);
    const parts =
      step.op === "conv"
        ? ["conv1d", "A_log", "dt_bias"]
        : step.op === "rope"
          ? ["q_norm", "k_norm"]
          : [];
    for (const part of parts) await vector(`${(step as { module: string }).module}.${part}`);
    options.onProgress?.(++done, steps.length);
  }
  const all = [...opened.values(), ...vectors.values()];
  return {
    matrix: (path) => matrices.get(path)!,
    vector: (path) => vectors.get(path)!,
    delta: (module) => ({
      conv: vectors.get(`${module}.conv1d`)!,
      aLog: vectors.get(`${module}.A_log`)!,
      dtBias: vectors.get(`${module}.dt_bias`)!,
    }),
    bytes: all.reduce((sum, values) => sum + values.byteLength, 0),
  };
}
