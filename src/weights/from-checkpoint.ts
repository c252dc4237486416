import type { Checkpoint } from "../checkpoint/checkpoint.ts";
import type { StoredTensor } from "../checkpoint/tensors.ts";
import { CheckpointError } from "../errors.ts";
import { openMatrix } from "./checkpoint-matrix.ts";
import { openVector, type VectorReader } from "./checkpoint-vector.ts";
import { weightsFingerprint } from "./fingerprint.ts";
import { matrixRoles, vectorRoles } from "./roles.ts";
import { tensorsByPath } from "./tensors-by-path.ts";
import type { Matrix, Weights } from "./weights.ts";

/**
 * The weights of an open checkpoint, which must stay open as long as they are read.
 *
 * Every tensor that the shape calls for is checked before this returns: that it exists, its dtype
 * and its exact shape. A tensor of the text model that the shape has no place for is refused too:
 * it means that the config and the weights belong to different models.
 *
 * @throws CheckpointError naming the tensor, with what was expected and what was found
 */
export async function weightsFromCheckpoint(checkpoint: Checkpoint): Promise<Weights> {
  const { layout, headers } = checkpoint;
  const { shape } = checkpoint.config;
  const used = new Set<StoredTensor>();
  const take = (name: string) => {
    const tensor = checkpoint.tensors.get(name);
    if (tensor !== undefined) used.add(tensor);
    return tensor;
  };
  const matrices = new Map<string, Matrix>();
  for (const role of matrixRoles(shape)) {
    matrices.set(role.path, openMatrix(checkpoint, role, take));
  }
  const embedding = matrices.get("embed_tokens");
  if (shape.tiedHead && embedding !== undefined) matrices.set("lm_head", embedding);
  const vectors = new Map<string, VectorReader>();
  for (const role of vectorRoles(shape)) {
    vectors.set(role.path, openVector(checkpoint, role, take));
  }
  refuseStrays(checkpoint, used);
  let storedBytes = 0;
  for (const tensor of used) storedBytes += tensor.bytes;
  return {
    shape,
    storedBytes,
    fingerprint: await weightsFingerprint([shape, layout], headers, used),
    ...tensorsByPath(matrices, vectors),
  };
}

function refuseStrays(checkpoint: Checkpoint, used: ReadonlySet<StoredTensor>): void {
  for (const [name, tensor] of checkpoint.tensors) {
    // A tied model's file may repeat the head; old ones carry a table of rotary frequencies.
    const harmless = name.startsWith("lm_head.") || name.endsWith("rotary_emb.inv_freq");
    if (used.has(tensor) || harmless) continue;
    throw new CheckpointError(
      tensor.file,
      `tensor ${tensor.name} has no place in the model that config.json describes`,
    );
  }
}
