import { blockSteps, contextSteps } from "../../model/drafter-steps.ts";
import { forwardSteps, type Step } from "../../model/forward.ts";
import { stepTensors } from "../../weights/tensors.ts";
import type { Matrix } from "../../weights/weights.ts";
import type { BackendOptions } from "../backend.ts";
import type { DeltaWeights } from "./delta.ts";
import { readMatrix } from "./tensors.ts";

/** Every tensor of the model and its drafter, widened to f32. */
export interface ReferenceTensors {
  /** [rows, cols]. */
  matrix(path: string): Float32Array;
  vector(path: string): Float32Array;
  delta(module: string): DeltaWeights;
  readonly bytes: number;
}

/** The steps of each kind of pass. */
export interface ReferenceSteps {
  readonly forward: readonly Step[];
  /** Empty without a drafter, as the block's are. */
  readonly context: readonly Step[];
  readonly block: readonly Step[];
}

/** How many tokens, from id 0 on, a drafter's head may propose. */
export const headRowsOf = ({ weights, drafter }: BackendOptions): number =>
  drafter?.vocabulary ?? weights.shape.vocabSize;

export function referenceSteps(options: BackendOptions): ReferenceSteps {
  const drafter = options.drafter?.weights.shape ?? null;
  return {
    forward: forwardSteps(options.weights.shape, options.taps, drafter?.featureLayers),
    context: drafter ? contextSteps(drafter) : [],
    block: drafter ? blockSteps(drafter, headRowsOf(options)) : [],
  };
}

const allSteps = ({ forward, context, block }: ReferenceSteps) => [
  ...forward,
  ...context,
  ...block,
];

const matricesOf = (step: Step): string[] => {
  if (step.op === "embed") return [step.matrix];
  return step.op === "project" ? step.projections.map(({ matrix }) => matrix) : [];
};

function vectorsOf(step: Step): string[] {
  if (step.op === "norm" || step.op === "gatedNorm") return [step.weight];
  if (step.op === "dynamicConv") return [step.base];
  const parts =
    step.op === "conv"
      ? ["conv1d", "A_log", "dt_bias"]
      : step.op === "rope" || step.op === "draftRope"
        ? ["q_norm", "k_norm"]
        : [];
  return parts.map((part) => `${(step as { module: string }).module}.${part}`);
}

const tensorsOf = ({ weights, drafter }: BackendOptions) =>
  stepTensors(weights, drafter?.weights ?? null);

/** Bytes of the matrices once they are widened. */
export function referenceBytes(options: BackendOptions): number {
  const source = tensorsOf(options);
  const paths = allSteps(referenceSteps(options)).flatMap(matricesOf);
  const matrices = new Set(paths.map((path) => source.matrix(path)));
  return [...matrices].reduce((sum, { rows, cols }) => sum + 4 * rows * cols, 0);
}

/** Reads the tensors that the steps name. */
export async function loadReference(options: BackendOptions): Promise<ReferenceTensors> {
  const source = tensorsOf(options);
  const matrices = new Map<string, Float32Array>();
  const vectors = new Map<string, Float32Array>();
  // A tied head is the embedding's own matrix.
  const opened = new Map<Matrix, Float32Array>();
  const steps = allSteps(referenceSteps(options));
  let done = 0;
  for (const step of steps) {
    for (const path of matricesOf(step)) {
      const matrix = source.matrix(path);
      const values = opened.get(matrix) ?? (await readMatrix(matrix));
      opened.set(matrix, values);
      matrices.set(path, values);
    }
    for (const path of vectorsOf(step)) {
      if (!vectors.has(path)) vectors.set(path, await source.vector(path));
    }
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
