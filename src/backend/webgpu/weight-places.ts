import type { Step } from "../../model/forward.ts";
import { derivedSizes } from "../../model/shape.ts";
import { type StepTensors, stepTensors } from "../../weights/tensors.ts";
import type { Matrix } from "../../weights/weights.ts";
import type { BufferSource } from "./device-memory.ts";
import { type DeviceMatrix, placeMatrix } from "./matrices.ts";
import type { PlaceOptions } from "./places.ts";
import { dispatchesMax, programSteps } from "./program-steps.ts";
import type { RowArrays } from "./row-arrays.ts";
import { tileRuns } from "./tile-runs.ts";
import { type DeviceTiles, placeTiles, type TileMember } from "./tiles.ts";

/** Bytes from one dispatch's parameters to the next: the largest alignment that adapters ask. */
export const parameterBytes = 256;

/**
 * The buffers that no pass writes. All are taken before the first is filled: where a device has no room for
 * them, that shows before minutes are spent on reading.
 */
export interface WeightPlaces {
  /** With f32 arithmetic. A tied head is the embedding's own matrix, and a drafter's are the target's. */
  readonly matrices: ReadonlyMap<Matrix, DeviceMatrix>;
  /** With f16 arithmetic, by the first of the matrices that lie side by side. */
  readonly tiles: ReadonlyMap<Matrix, DeviceTiles>;
  /** Norms and other small tensors, by the labels that steps give them. */
  readonly vectors: ReadonlyMap<string, GPUBuffer>;
  /** Of all dispatches. */
  readonly parameters: GPUBuffer;
}

/** @param arrays of the same options */
export async function placeWeights(
  memory: BufferSource,
  options: PlaceOptions,
  arrays: RowArrays,
): Promise<WeightPlaces> {
  const tensors = stepTensors(options.weights, options.drafter?.weights ?? null);
  const steps = Object.values(programSteps(options)).flat();
  const matrices = new Map<Matrix, DeviceMatrix>();
  const tiles = new Map<Matrix, DeviceTiles>();
  const vectors = new Map<string, GPUBuffer>();
  const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST;
  for (const step of steps) {
    for (const { label, members } of runsOf(step, options, tensors, arrays)) {
      const { matrix } = members[0]!;
      if (matrices.has(matrix) || tiles.has(matrix)) continue;
      if (options.arithmetic === "f32") {
        matrices.set(matrix, await placeMatrix(memory, label, matrix));
      } else {
        tiles.set(matrix, await placeTiles(memory, label, members));
      }
    }
    const vector = vectorOf(step, options);
    if (!vector || vectors.has(vector.label)) continue;
    const { label, floats } = vector;
    vectors.set(label, await memory.create(label, 4 * floats, usage));
  }
  const dispatches = dispatchesMax(steps, options, memory.bufferBytesMax);
  const parameters = await memory.create(
    "parameters",
    parameterBytes * dispatches,
    GPUBufferUsage.UNIFORM | GPUBufferUsage.COPY_DST,
  );
  return { matrices, tiles, vectors, parameters };
}

interface Run {
  readonly label: string;
  readonly members: readonly TileMember[];
}

/** A step's matrices: each for itself, or in f16 as many as lie in one. */
function runsOf(
  step: Step,
  { arithmetic }: PlaceOptions,
  tensors: StepTensors,
  arrays: RowArrays,
): Run[] {
  const alone = (path: string) => ({
    label: path,
    members: [{ matrix: tensors.matrix(path), at: 0 }],
  });
  if (step.op === "embed") return [alone(step.matrix)];
  if (step.op !== "project") return [];
  if (arithmetic === "f32") return step.projections.map(({ matrix }) => alone(matrix));
  const label = step.projections[0]!.matrix;
  return tileRuns(step, tensors, arrays).map((members) => ({ label, members }));
}

interface Vector {
  readonly label: string;
  readonly floats: number;
}

/** The small tensors that a step's dispatches read, which lie in one buffer. */
function vectorOf(step: Step, { weights, drafter }: PlaceOptions): Vector | null {
  const { shape } = weights;
  const { hiddenSize, headDim } = shape;
  switch (step.op) {
    case "norm":
      return { label: step.weight, floats: hiddenSize };
    case "conv": {
      const { convDim } = derivedSizes(shape);
      const { convTaps, linearValueDim, linearValueHeads } = shape;
      const floats = convTaps * convDim + linearValueDim + 4 * linearValueHeads;
      return { label: `${step.module} vectors`, floats };
    }
    case "rope":
      return { label: `${step.module} norms`, floats: 2 * headDim };
    case "draftRope":
      return { label: `${step.module} norms`, floats: 2 * drafter!.weights.shape.headDim };
    case "contextRope": {
      const { layers, headDim: width } = drafter!.weights.shape;
      return { label: "context norms", floats: layers.length * width };
    }
    case "dynamicConv":
      // Two sides of two taps each.
      return { label: step.base, floats: 4 * hiddenSize };
    default:
      return null;
  }
}
