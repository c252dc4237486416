import { blockSteps, contextSteps } from "../../model/drafter-steps.ts";
import { forwardSteps, type Step } from "../../model/forward.ts";
import { stepTensors } from "../../weights/tensors.ts";
import { partsOf } from "./matrices.ts";
import type { PlaceOptions } from "./places.ts";
import { tilePartsOf } from "./tiles.ts";

/** The steps of the target's passes, and of a drafter's two kinds; none without one. */
export function programSteps(options: PlaceOptions): Record<"pass" | "extend" | "draft", Step[]> {
  const { weights, taps } = options;
  const drafter = options.drafter?.weights.shape ?? null;
  return {
    pass: forwardSteps(weights.shape, taps, drafter?.featureLayers),
    extend: drafter ? contextSteps(drafter) : [],
    draft: drafter ? blockSteps(drafter, headRowsOf(options)) : [],
  };
}

/** How many tokens, from id 0 on, drafts may propose. */
export const headRowsOf = ({
  weights,
  drafter,
}: Pick<PlaceOptions, "weights" | "drafter">): number =>
  drafter?.vocabulary ?? weights.shape.vocabSize;

/** How many dispatches the steps take at most: a few each, and one for each part of a matrix. */
export function dispatchesMax(
  steps: readonly Step[],
  { weights, drafter, arithmetic }: PlaceOptions,
  bindingBytesMax: number,
): number {
  const { matrix } = stepTensors(weights, drafter?.weights ?? null);
  const partsIn = arithmetic === "f16" ? tilePartsOf : partsOf;
  const parts = steps.flatMap(matricesOf).map((path) => partsIn(matrix(path), bindingBytesMax));
  return parts.reduce((sum, count) => sum + count, 4 * steps.length + 5);
}

function matricesOf(step: Step): string[] {
  if (step.op === "embed") return [step.matrix];
  return step.op === "project" ? step.projections.map(({ matrix }) => matrix) : [];
}
