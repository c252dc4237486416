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
import {
  ACTIVATIONS_INT8,
  INSTRUCTION_BYTES,
  PASS_BLOCK_DRAWS,
  PASS_BLOCK_ROWS,
  PASS_CONTEXT_ROWS,
  PASS_DRAWS,
  PASS_ROWS,
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
 * Places weights, instructions and the steps' counters. One program holds every kind of pass: the target's,
 * keeps, and a drafter's two. Instructions whose count in the pass block is zero are passed over.
 */
export function buildProgram(
  arena: Arena,
  options: BackendOptions,
  places: Places,
  activations: number,
): Program {
  const { weights, taps, drafter = null } = options;
  const target: Encoding = {
    arena,
    tensors: new PlacedTensors(arena, stepTensors(weights, drafter?.weights ?? null)),
    places,
    shape: weights.shape,
    drafter: drafter?.weights.shape ?? null,
    taps,
    activations,
    rows: PASS_ROWS,
    draws: PASS_DRAWS,
    normEps: weights.shape.normEps,
  };
  const steps = forwardSteps(weights.shape, taps, target.drafter?.featureLayers);
  const instructions = [
    ...steps.flatMap((step) => encodeStep(target, step)),
    ...keepInstructions(target),
    ...(drafter ? draftInstructions(target, drafter) : []),
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
  const drafter = { ...target, draws: PASS_BLOCK_DRAWS, normEps: shape.normEps };
  const context = { ...drafter, rows: PASS_CONTEXT_ROWS };
  const read = activations === "int8" ? ACTIVATIONS_INT8 : target.activations;
  const block = { ...drafter, rows: PASS_BLOCK_ROWS, activations: read };
  const blocks = blockSteps(shape, vocabulary ?? shape.vocabSize);
  return [
    ...contextSteps(shape).flatMap((step) => encodeStep(context, step)),
    ...blocks.flatMap((step) => encodeStep(block, step)),
  ];
}
