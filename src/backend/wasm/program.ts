import { blockSteps, contextSteps } from "../../model/drafter-steps.ts";
import { forwardSteps } from "../../model/forward.ts";
import { derivedSizes } from "../../model/shape.ts";
import { stepTensors } from "../../weights/tensors.ts";
import type { BackendOptions, DrafterOptions } from "../backend.ts";
import type { Arena } from "./arena.ts";
import { encodeStep } from "./encode.ts";
import { encodeMoveKv } from "./encode-attention.ts";
import { encodeKeep } from "./encode-delta.ts";
import { encodeMoveFeatures } from "./encode-draft.ts";
import type { Encoding, Instruction } from "./encoding.ts";
import type { WeightMemories } from "./far.ts";
import {
  ACTIVATIONS_INT8,
  INSTRUCTION_BYTES,
  PASS_BLOCK,
  PASS_CONTEXT,
  PASS_DRAWS,
  PASS_ROWS,
  PASS_TARGET,
  STEP_BYTES,
} from "./layout.ts";
import type { Places } from "./places.ts";
import { PlacedTensors } from "./tensors.ts";

/** Addresses of the instructions and of the steps' counters, and how many steps there are. */
export interface Program {
  readonly at: number;
  readonly count: number;
  readonly counters: number;
}

/**
 * Places weights, instructions and the steps' counters. One program holds every kind of pass: keeps, a
 * drafter's two, and the target's. Instructions whose count in their kind's block is zero are passed over.
 */
export function buildProgram(
  arena: Arena,
  memories: WeightMemories,
  options: BackendOptions,
  places: Places,
  activations: number,
): Program {
  const { weights, taps, drafter = null } = options;
  const target: Encoding = {
    arena,
    tensors: new PlacedTensors(arena, memories, stepTensors(weights, drafter?.weights ?? null)),
    places,
    shape: weights.shape,
    drafter: drafter?.weights.shape ?? null,
    taps,
    activations,
    rows: PASS_TARGET + PASS_ROWS,
    draws: PASS_TARGET + PASS_DRAWS,
    normEps: weights.shape.normEps,
  };
  const steps = forwardSteps(weights.shape, taps, target.drafter?.featureLayers);
  const instructions = [
    ...keepInstructions(target),
    ...(drafter ? draftInstructions(target, drafter) : []),
    ...steps.flatMap((step) => encodeStep(target, step)),
  ];
  const words = instructions.flatMap((instruction) => {
    const padding = INSTRUCTION_BYTES / 4 - instruction.length;
    return [...instruction, ...new Array<number>(padding).fill(0)];
  });
  const counters = arena.place(STEP_BYTES * (instructions.length + 1));
  return { at: arena.placeU32(words), count: instructions.length, counters };
}

function keepInstructions(target: Encoding): Instruction[] {
  const { linearLayers, fullLayers } = derivedSizes(target.shape);
  const eachOf = (layers: number, encode: (target: Encoding, layer: number) => Instruction) =>
    Array.from({ length: layers }, (_, layer) => encode(target, layer));
  return [
    ...eachOf(linearLayers, encodeKeep),
    ...eachOf(fullLayers, encodeMoveKv),
    ...(target.drafter ? [encodeMoveFeatures(target)] : []),
  ];
}

function draftInstructions(
  target: Encoding,
  { weights, vocabulary, activations }: DrafterOptions,
): Instruction[] {
  const { shape } = weights;
  const context = { ...target, rows: PASS_CONTEXT + PASS_ROWS, normEps: shape.normEps };
  const read = activations === "int8" ? ACTIVATIONS_INT8 : target.activations;
  const block = {
    ...context,
    rows: PASS_BLOCK + PASS_ROWS,
    draws: PASS_BLOCK + PASS_DRAWS,
    activations: read,
  };
  const blocks = blockSteps(shape, vocabulary ?? shape.vocabSize);
  return [
    ...contextSteps(shape).flatMap((step) => encodeStep(context, step)),
    ...blocks.flatMap((step) => encodeStep(block, step)),
  ];
}
