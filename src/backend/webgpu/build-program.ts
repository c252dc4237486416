import { forwardSteps, matrixPaths, type Step } from "../../model/forward.ts";
import type { DeviceMemory } from "./device-memory.ts";
import { partsOf } from "./matrices.ts";
import type { Pipelines } from "./pipelines.ts";
import type { Places } from "./places.ts";
import { type Program, ProgramBuilder, type ProgramOptions } from "./program.ts";
import { addAttend, addRope } from "./steps-attention.ts";
import { addGdn } from "./steps-gdn.ts";
import { addProject } from "./steps-project.ts";
import { addEmbed, addNorm, addSwiglu, addTap } from "./steps-rows.ts";
import { addTopk } from "./steps-topk.ts";
import { tilePartsOf } from "./tiles.ts";

/** Uploads the weights, compiles the kernels and lays out the dispatches of a pass. */
export async function buildProgram(
  device: GPUDevice,
  memory: DeviceMemory,
  pipelines: Pipelines,
  options: ProgramOptions,
  places: Places,
): Promise<Program> {
  const steps = forwardSteps(options.weights.shape, options.taps);
  const most = dispatchesMax(steps, options, device.limits.maxStorageBufferBindingSize);
  const builder = await ProgramBuilder.create(device, memory, pipelines, options, places, most);
  let taps = 0;
  for (const [index, step] of steps.entries()) {
    if (step.op === "tap") await addTap(builder, taps++);
    else await addStep(builder, step);
    options.onProgress?.(index + 1, steps.length);
  }
  await addTopk(builder);
  return builder.program;
}

/** How many dispatches the steps take at most: a few each, and one for each part of a matrix. */
function dispatchesMax(
  steps: readonly Step[],
  { weights, arithmetic }: ProgramOptions,
  bindingBytesMax: number,
): number {
  const matrices = matrixPaths(weights.shape);
  const partsIn = arithmetic === "f16" ? tilePartsOf : partsOf;
  const parts = matrices.map((path) => partsIn(weights.matrix(path), bindingBytesMax));
  return parts.reduce((sum, count) => sum + count, 4 * steps.length + 2);
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
      return await addSwiglu(builder);
    default:
      step satisfies never;
  }
}
