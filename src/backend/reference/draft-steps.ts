import type { DrafterLayer, DrafterShape } from "../../model/drafter-shape.ts";
import { draftPrefix } from "../../model/drafter-steps.ts";
import type { DraftStep } from "../../model/forward.ts";
import { drafterRotation } from "../../model/rope.ts";
import { attend, placeKeys, placeQueries } from "./attention.ts";
import { featuresOf } from "./memory.ts";
import { eachRow, type PassRow, type PassView } from "./pass-view.ts";

/** Executes a step that only models with a drafter have. */
export function draftStep(pass: PassView, drafter: DrafterShape, step: DraftStep): void {
  switch (step.op) {
    case "feature":
      keepFeature(pass, step.index);
      break;
    case "gather":
      eachRow(pass.plan, ({ segment, row, place }) => {
        pass.rows("features")[row]!.set(featuresOf(pass.memory.slots[segment.stateSlot]!, place));
      });
      break;
    case "dynamicConv":
      dynamicConv(pass, drafter, step);
      break;
    case "contextRope":
      contextRope(pass, drafter);
      break;
    case "draftRope":
      draftRope(pass, drafter, step);
      break;
    case "draftAttend":
      draftAttend(pass, drafter, step.draftLayer);
      break;
    default:
      step satisfies never;
  }
}

function keepFeature(pass: PassView, index: number): void {
  eachRow(pass.plan, ({ segment, row, place }) => {
    const hidden = pass.rows("hidden")[row]!;
    const features = featuresOf(pass.memory.slots[segment.nextSlot]!, place);
    features.set(hidden, index * hidden.length);
  });
}

function dynamicConv(
  pass: PassView,
  { convolution }: DrafterShape,
  step: DraftStep & { op: "dynamicConv" },
): void {
  const base = pass.tensors.vector(step.base);
  const { groupSize } = convolution!;
  eachRow(pass.plan, ({ row, local }) => {
    const current = pass.rows(step.input)[row]!;
    const previous = local > 0 ? pass.rows(step.input)[row - 1]! : null;
    const deltas = pass.rows("draftKernel")[row]!;
    const out = pass.rows(step.out)[row]!;
    const width = out.length;
    const kernel = (tap: number, channel: number) => {
      const at = 2 * step.side + tap;
      const group = Math.floor(channel / groupSize);
      return base[at * width + channel]! + deltas[(at * width) / groupSize + group]!;
    };
    for (let channel = 0; channel < width; channel++) {
      let sum = kernel(0, channel) * current[channel]!;
      if (previous) sum += kernel(1, channel) * previous[channel]!;
      out[channel] = step.accumulate ? out[channel]! + sum : sum;
    }
  });
}

function contextRope(pass: PassView, drafter: DrafterShape): void {
  const rotation = drafterRotation(drafter.rope, drafter.headDim);
  const { layers } = pass.memory.draftKv;
  layers.forEach((kv, layer) => {
    const norm = pass.tensors.vector(`${draftPrefix}layers.${layer}.self_attn.k_norm`);
    eachRow(pass.plan, ({ segment, row, place, position }) => {
      const part = (all: Float32Array) => {
        const width = all.length / layers.length;
        return all.subarray(layer * width, (layer + 1) * width);
      };
      const key = part(pass.rows("contextKeys")[row]!);
      const value = part(pass.rows("contextValues")[row]!);
      placeKeys(drafter, norm, rotation, { key, value, position }, segment.pages, place, kv);
    });
  });
}

function draftRope(
  pass: PassView,
  drafter: DrafterShape,
  { module, draftLayer }: DraftStep & { op: "draftRope" },
): void {
  const rotation = drafterRotation(drafter.rope, drafter.headDim);
  const queryNorm = pass.tensors.vector(`${module}.q_norm`);
  const keyNorm = pass.tensors.vector(`${module}.k_norm`);
  const kv = pass.memory.draftKv.layers[draftLayer]!;
  eachRow(pass.plan, ({ segment, row, place, position }) => {
    const vectors = pass.rows("draftQuery")[row]!;
    const out = pass.rows("draftRotated")[row]!;
    const stride = drafter.headDim;
    placeQueries(drafter, queryNorm, rotation, { vectors, stride, out }, position);
    const key = pass.rows("draftKey")[row]!;
    const value = pass.rows("draftValue")[row]!;
    placeKeys(drafter, keyNorm, rotation, { key, value, position }, segment.pages, place, kv);
  });
}

function draftAttend(pass: PassView, drafter: DrafterShape, draftLayer: number): void {
  const layer = drafter.layers[draftLayer]!;
  const kv = pass.memory.draftKv.layers[draftLayer]!;
  eachRow(pass.plan, (at) => {
    const query = pass.rows("draftRotated")[at.row]!;
    const attended = attend(drafter, query, visiblePlaces(layer, at), at.segment.pages, kv);
    pass.rows("draftAttended")[at.row]!.set(attended);
  });
}

/** The context's rows that a row of a block sees, then the block's. */
function visiblePlaces(
  { window, causal }: DrafterLayer,
  { segment, local, position }: PassRow,
): number[] {
  const { start, rows } = segment;
  const first = window === null ? 0 : Math.max(0, position - window + 1);
  const end = start + (causal ? local + 1 : rows);
  const context = Math.min(first, start);
  return Array.from({ length: end - context }, (_, index) => context + index);
}
