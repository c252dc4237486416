import { InputError } from "../../errors.ts";
import type { DrafterShape } from "../../model/drafter-shape.ts";
import type { ModelShape } from "../../model/shape.ts";
import { matrixFeature, type OpenDevice } from "./device.ts";
import type { KvType } from "./kv-pages.ts";
import type { Arithmetic } from "./projection-layout.ts";

/** What a device, open or not yet, can compute with. */
export type Abilities = Pick<OpenDevice, "features" | "description">;

/** What projections compute with. */
export function arithmeticFor(
  activations: "auto" | Arithmetic,
  { features, description }: Abilities,
): Arithmetic {
  if (activations === "f16" && !features.has("shader-f16")) {
    throw new InputError(`${description} has no f16 arithmetic. Use --activations f32.`);
  }
  if (activations !== "auto") return activations;
  return features.has(matrixFeature) ? "f16" : "f32";
}

/** @throws InputError where keys and values can't be stored so */
export function checkKv(kv: KvType, { features, description }: Abilities): void {
  if (kv === "f32" || features.has("shader-f16")) return;
  throw new InputError(`${description} has no 16-bit floats. Use --kv f32.`);
}

/** The same for people, and for whoever compares results. */
export function arithmeticText(
  { arithmetic, kv }: { readonly arithmetic: Arithmetic; readonly kv?: KvType },
  { device }: OpenDevice,
): string {
  const unit = device.features.has(matrixFeature) ? "matrix unit" : "no matrix unit";
  const matmuls = arithmetic === "f32" ? "f32" : `f16 activations and weights, f32 sums, ${unit}`;
  return kv === "f16" ? `${matmuls}, f16 KV` : matmuls;
}

/** Whether a device computes on the CPU. */
export const isSoftware = ({ adapterInfo }: GPUDevice): boolean => adapterInfo.isFallbackAdapter;

/** A workgroup's threads take four dims of a head each (`kernels/attend.wgsl`). */
const headDimMax = 256;

/** Refuses shapes whose vectors don't divide as the kernels need; every released model's do. */
export function checkShape(shape: ModelShape): void {
  const divisors: readonly [keyof ModelShape, number][] = [
    ["hiddenSize", 4],
    ["headDim", 4],
    ["linearKeyDim", 4],
    ["linearValueDim", 4],
    ["rotaryDim", 2],
  ];
  if (shape.headDim > headDimMax) {
    throw new InputError(
      `The webgpu backend attends with up to ${headDimMax} dims a head, not ${shape.headDim}. ` +
        "The reference backend runs any shape.",
    );
  }
  for (const [field, divisor] of divisors) {
    const value = shape[field] as number;
    if (value % divisor === 0) continue;
    throw new InputError(
      `The webgpu backend needs ${field} to be a multiple of ${divisor}, not ${value}. ` +
        "The reference backend runs any shape.",
    );
  }
}

/** The same of a drafter. Where one is in use, the target's buffers are its own too, and hold vectors alone. */
export function checkDrafter(drafter: DrafterShape, target: ModelShape): void {
  const divisors: readonly [name: string, value: number][] = [
    ["headDim", drafter.headDim],
    ["intermediateSize", drafter.intermediateSize],
    ["intermediateSize of the model", target.intermediateSize],
    ["groupSize", drafter.convolution?.groupSize ?? 0],
  ];
  if (drafter.headDim > headDimMax) {
    throw new InputError(
      `The webgpu backend drafts with up to ${headDimMax} dims a head, not ${drafter.headDim}.`,
    );
  }
  for (const [name, value] of divisors) {
    if (value % 4 === 0) continue;
    throw new InputError(
      `To draft, the webgpu backend needs ${name} to be a multiple of 4, not ${value}.`,
    );
  }
}

/** The largest power of two up to `most` that divides `value`. */
export function powerOfTwoDivisor(value: number, most: number): number {
  let divisor = most;
  while (value % divisor !== 0) divisor /= 2;
  return divisor;
}
