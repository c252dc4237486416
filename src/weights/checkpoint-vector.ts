import type { Checkpoint } from "../checkpoint/checkpoint.ts";
import { checkShape, floatType, presentTensor, type TakeTensor } from "./checkpoint-tensor.ts";
import { widen } from "./floats.ts";
import type { VectorRole } from "./roles.ts";

export type VectorReader = () => Promise<Float32Array>;

/**
 * Checks a small tensor and returns what reads it, ready to use: a zero-centred norm of a Hugging
 * Face file becomes f32(1 + w); MLX files store that already.
 */
export function openVector(
  checkpoint: Checkpoint,
  role: VectorRole,
  take: TakeTensor,
): VectorReader {
  const tensor = presentTensor(checkpoint, role.tensor, take);
  const dtype = floatType(tensor);
  checkShape(tensor, storedShape(role, checkpoint.layout));
  const shifted = role.kind === "centred" && checkpoint.layout === "hf";
  return async () => {
    const values = widen(await tensor.read(0, tensor.bytes), dtype);
    return shifted ? values.map((value) => 1 + value) : values;
  };
}

/** Both layouts of a convolution hold its taps in the same byte order. */
function storedShape(role: VectorRole, layout: Checkpoint["layout"]): readonly number[] {
  if (role.kind !== "conv") return role.shape;
  const [channels = 0, taps = 0] = role.shape;
  return layout === "hf" ? [channels, 1, taps] : [channels, taps, 1];
}
