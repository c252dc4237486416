import type { Step } from "../../model/forward.ts";
import type { DeviceMemory } from "./device-memory.ts";
import type { Pipelines } from "./pipelines.ts";
import type { Places } from "./places.ts";
import { type Program, ProgramBuilder, type ProgramOptions } from "./program.ts";
import { headRowsOf, programSteps } from "./program-steps.ts";
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
import { synthesiser } from "./synthesise.ts";
import { placeWeights } from "./weight-places.ts";

/** Places and fills the weights, compiles the kernels and lays out the dispatches of each kind of pass. */
export async function buildProgram(
  device: GPUDevice,
  memory: DeviceMemory,
  pipelines: Pipelines,
  options: ProgramOptions,
  places: Places,
): Promise<Program> {
  const sections = programSteps(options);
  const total = Object.values(sections).flat().length;
  const weights = await placeWeights(memory, options, places.arrays);
  const synthesise = options.synthetic ? synthesiser(device, memory) : null;
  const builder = new ProgramBuilder(device, pipelines, options, places, weights, synthesise);
  let done = 0;
  for (const section of ["pass", "extend", "draft"] as const) {
    builder.begin(section);
    let tapsDone = 0;
    for (const step of sections[section]) {
      if (step.op === "tap") await addTap(builder, tapsDone++);
      else await addStep(builder, step);
      options.onProgress?.(++done, total);
    }
    if (section === "pass") await addTopk(builder, options.weights.shape.vocabSize);
    if (section === "draft" && options.drafter) await addTopk(builder, headRowsOf(options));
  }
  if (options.drafter) await addFeatureMove(builder);
  return builder.program;
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
