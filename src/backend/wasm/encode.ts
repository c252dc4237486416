import type { Step } from "../../model/forward.ts";
import {
  encodeContextRope,
  encodeDraftAttend,
  encodeDraftRope,
  encodeTargetAttend,
  encodeTargetRope,
} from "./encode-attention.ts";
import { encodeConv, encodeGatedNorm, encodeScan } from "./encode-delta.ts";
import { encodeDynamicConv, encodeFeature, encodeGather } from "./encode-draft.ts";
import { type Encoding, floatWord, type Instruction, rowOf, widthOf } from "./encoding.ts";
import { OP_EMBED, OP_NORM, OP_PROJECT, OP_SWIGLU, OP_TAP } from "./layout.ts";

/** The instructions of a step. */
export function encodeStep(encoding: Encoding, step: Step): readonly Instruction[] {
  return step.op === "contextRope" ? encodeContextRope(encoding) : [encodeOne(encoding, step)];
}

function encodeOne(encoding: Encoding, step: Exclude<Step, { op: "contextRope" }>): Instruction {
  const { tensors, rows } = encoding;
  switch (step.op) {
    case "embed":
      return [OP_EMBED, rows, tensors.matrix(step.matrix), ...rowOf(encoding, step.out)];
    case "tap":
      return encodeTap(encoding, step);
    case "norm":
      return encodeNorm(encoding, step);
    case "project":
      return encodeProject(encoding, step);
    case "conv":
      return encodeConv(encoding, step.module, step.linearLayer);
    case "scan":
      return encodeScan(encoding, step.linearLayer);
    case "gatedNorm":
      return encodeGatedNorm(encoding, step.weight);
    case "rope":
      return encodeTargetRope(encoding, step.module, step.fullLayer);
    case "attend":
      return encodeTargetAttend(encoding, step.fullLayer);
    case "swiglu": {
      const buffers = [...rowOf(encoding, step.gate), ...rowOf(encoding, step.up)];
      return [OP_SWIGLU, rows, ...buffers, widthOf(encoding, step.gate)];
    }
    case "feature":
      return encodeFeature(encoding, step.index);
    case "gather":
      return encodeGather(encoding);
    case "dynamicConv":
      return encodeDynamicConv(encoding, step);
    case "draftRope":
      return encodeDraftRope(encoding, step.module, step.draftLayer);
    case "draftAttend":
      return encodeDraftAttend(encoding, step.draftLayer);
    default:
      return step satisfies never;
  }
}

function encodeTap(encoding: Encoding, { input, tap }: Step & { op: "tap" }): Instruction {
  const { at, strideBytes } = encoding.places.taps[encoding.taps.indexOf(tap)]!;
  const width = widthOf(encoding, input);
  return [OP_TAP, encoding.rows, ...rowOf(encoding, input), at, strideBytes, width];
}

function encodeNorm(encoding: Encoding, step: Step & { op: "norm" }): Instruction {
  const width = widthOf(encoding, step.input);
  return [
    OP_NORM,
    step.rows === "draws" ? encoding.draws : encoding.rows,
    ...rowOf(encoding, step.input),
    ...rowOf(encoding, step.out),
    width,
    encoding.tensors.vector(step.weight, width),
    floatWord(encoding.normEps),
  ];
}

function encodeProject(encoding: Encoding, step: Step & { op: "project" }): Instruction {
  const records = step.projections.flatMap(({ matrix, out, accumulate, outAt = 0, rows }) => {
    const [at, strideBytes] = rowOf(encoding, out);
    const record = encoding.tensors.matrix(matrix, rows);
    return [record, at + 4 * outAt, strideBytes, accumulate ? 1 : 0];
  });
  return [
    OP_PROJECT,
    step.rows === "draws" ? encoding.draws : encoding.rows,
    ...rowOf(encoding, step.input),
    step.projections.length,
    encoding.activations,
    encoding.arena.placeU32(records),
  ];
}
