import { blockSteps, contextSteps } from "../../model/drafter-steps.ts";
import { forwardSteps, type Step } from "../../model/forward.ts";
import { stepTensors } from "../../weights/tensors.ts";
import type { DeviceMemory } from "./device-memory.ts";
import { partsOf } from "./matrices.ts";
import type { Pipelines } from "./pipelines.ts";
import type { Places } from "./places.ts";
import { type Program, ProgramBuilder, type ProgramOptions } from "./program.ts";
import { addAttend, addRope } from "./steps-attention.ts";
import {
  addContextRope,
  addDraftAttend,
  addDraftRope,
  addDynamicConv,
  addFeatureMove,
  addGather,
} from "./steps-draft.ts";
import { addGdn } from "./steps-gdn.ts";
import { addProject } from "./steps-project.ts";
import { addEmbed, addNorm, addSwiglu, addTap } from "./steps-rows.ts";
import { addTopk } from "./steps-topk.ts";
import { tilePartsOf } from "./tiles.ts";

/** Uploads the weights, compiles the kernels and lays out the dispatches of each kind of pass. */
export async function buildProgram(
  device: GPUDevice,
  memory: DeviceMemory,
  pipelines: Pipelines,
  options: ProgramOptions,
  places: Places,
): Promise<Program> {
  const { weights, drafter, taps } = options;
  const shape = drafter?.weights.shape ?? null;
  const headRows = headRowsOf(options);
  const sections = {
    pass: forwardSteps(weights.shape, taps, shape?.featureLayers),
    extend: shape ? contextSteps(shape) : [],
    draft: shape ? blockSteps(shape, headRows) : [],
  };
  const steps = Object.values(sections).flat();
  const most = dispatchesMax(steps, options, device.limits.maxStorageBufferBindingSize);
  const builder = await ProgramBuilder.create(device, memory, pipelines, options, places, most);
  let done = 0;
  for (const section of ["pass", "extend", "draft"] as const) {
    builder.begin(section);
    let tapsDone = 0;
    for (const step of sections[section]) {
      if (step.op === "tap") await addTap(builder, tapsDone++);
      else await addStep(builder, step);
      options.onProgress?.(++done, steps.length);
    }
    if (section === "pass") await addTopk(builder, weights.shape.vocabSize);
    if (section === "draft" && shape) await addTopk(builder, headRows);
  }
  if (shape) await addFeatureMove(builder);
  return builder.program;
}

/** How many tokens, from id 0 on, drafts may propose. */
export const headRowsOf = ({
  weights,
  drafter,
}: Pick<ProgramOptions, "weights" | "drafter">): number =>
  drafter?.vocabulary ?? weights.shape.vocabSize;

/** How many dispatches the steps take at most: a few each, and one for each part of a matrix. */
function dispatchesMax(
  steps: readonly Step[],
  { weights, drafter, arithmetic }: ProgramOptions,
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

async function addStep(builder: ProgramBuilder, step: Exclude<Step, { op: "tap" }>): Promise<void> {
  switch (step.op) {
    case "embed":
      return await addEmbed(builder, step.matrix);
    case "norm":
      return await addNorm(builder, step);
    case "project":
      return await addProject(builder, step);
    case "conv":
      return await addGdn(builder, step.module, step.linearLayer);
    case "scan":
    case "gatedNorm":
      // They follow a conv, whose kernel does all three.
      return;
    case "rope":
      return await addRope(builder, step.module, step.fullLayer);
    case "attend":
      return await addAttend(builder, step.fullLayer);
    case "swiglu":
      return await addSwiglu(builder, step);
    case "feature":
      // The next norm keeps it.
      builder.feature = step.index;
      return;
    case "gather":
      return await addGather(builder);
    case "dynamicConv":
      return await addDynamicConv(builder, step);
    case "contextRope":
      return await addContextRope(builder);
    case "draftRope":
      return await addDraftRope(builder, step.module, step.draftLayer);
    case "draftAttend":
      return await addDraftAttend(builder, step.draftLayer);
    default:
      step satisfies never;
  }
}
