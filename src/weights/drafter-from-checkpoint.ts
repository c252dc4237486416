import type { DrafterCheckpoint } from "../checkpoint/drafter.ts";
import { drafterNames } from "../checkpoint/drafter-kind.ts";
import type { StoredTensor } from "../checkpoint/tensors.ts";
import { CheckpointError } from "../errors.ts";
import type { ModelShape } from "../model/shape.ts";
import { openMatrix } from "./checkpoint-matrix.ts";
import { checkShape, floatType, presentTensor, type TakeTensor } from "./checkpoint-tensor.ts";
import { openCodebooks, type StoredCodebooks } from "./codebooks.ts";
import { type DrafterVectorRole, drafterMatrixRoles, drafterVectorRoles } from "./drafter-roles.ts";
import type { DrafterWeights } from "./drafter-weights.ts";
import { weightsFingerprint } from "./fingerprint.ts";
import { widen } from "./floats.ts";
import { matrixBytes } from "./matrix-bytes.ts";
import { quantizedMatrix } from "./quantized-matrix.ts";
import type { MatrixRole } from "./roles.ts";
import { tensorsByPath } from "./tensors-by-path.ts";
import type { Matrix } from "./weights.ts";

/** Columns that share a scale where a drafter is quantised at load. */
const groupSize = 64;

export interface LoadedDrafter {
  readonly weights: DrafterWeights;
  /** DFlash2's. */
  readonly codebooks: StoredCodebooks | null;
}

/**
 * The weights of an open drafter, which must stay open as long as they are read, for one model.
 *
 * Every tensor that its shape calls for is checked before this returns, and one that has no place in it
 * is refused, as with models.
 *
 * @param bits what matrices of floats are quantised to as they are read, where groups of 64 divide their
 *   columns; 0 leaves them. A checkpoint that is quantised already stays as it is.
 * @throws CheckpointError naming the tensor, or what of the drafter isn't the model's
 */
export async function drafterFromCheckpoint(
  checkpoint: DrafterCheckpoint,
  target: ModelShape,
  bits: 0 | 4 | 8,
): Promise<LoadedDrafter> {
  checkTarget(checkpoint, target);
  const { shape, quantization } = checkpoint.config;
  const used = new Set<StoredTensor>();
  const take = (name: string) => {
    const tensor = checkpoint.tensors.get(name);
    if (tensor !== undefined) used.add(tensor);
    return tensor;
  };
  const quantized = quantization === null ? bits : 0;
  const matrices = new Map<string, Matrix>();
  for (const role of drafterMatrixRoles(shape)) {
    matrices.set(role.path, drafterMatrix(checkpoint, role, take, quantized));
  }
  const vectors = new Map<string, () => Promise<Float32Array>>();
  let vectorBytes = 0;
  for (const role of drafterVectorRoles(shape)) {
    const tensor = drafterVector(checkpoint, role, take);
    const type = floatType(tensor);
    vectorBytes += tensor.bytes;
    vectors.set(role.path, async () => widen(await tensor.read(0, tensor.bytes), type));
  }
  const readCodebooks = openCodebooks(checkpoint, shape, take);
  refuseStrays(checkpoint, used);
  const weights: DrafterWeights = {
    shape,
    storedBytes: [...matrices.values()].reduce((sum, m) => sum + matrixBytes(m), vectorBytes),
    fingerprint: await weightsFingerprint([shape, quantized], checkpoint.headers, used),
    ...tensorsByPath(matrices, vectors),
  };
  return { weights, codebooks: readCodebooks && (await readCodebooks()) };
}

/** A drafter reads its model's embedding, hidden states and head: all sizes must be the model's. */
function checkTarget({ folder, config }: DrafterCheckpoint, target: ModelShape): void {
  const { shape, targetLayers } = config;
  const layers = target.layerTypes.length;
  const deepest = Math.max(...shape.featureLayers);
  const differs = (what: string, own: number, theirs: number) =>
    own === theirs ? null : `${what} ${own}, the model's is ${theirs}`;
  const reason =
    differs("hidden_size", shape.hiddenSize, target.hiddenSize) ??
    differs("vocab_size", shape.vocabSize, target.vocabSize) ??
    differs("num_target_layers", targetLayers ?? layers, layers) ??
    (deepest < layers ? null : `target_layer_ids up to ${deepest}, the model has ${layers} layers`);
  if (reason === null) return;
  const name = `${drafterNames[shape.kind]} drafter`;
  throw new CheckpointError(folder.name, `is a ${name} of another model: it has ${reason}.`);
}

function drafterMatrix(
  checkpoint: DrafterCheckpoint,
  role: MatrixRole,
  take: TakeTensor,
  bits: 0 | 4 | 8,
): Matrix {
  const matrix = openMatrix(checkpoint, role, take);
  if (bits === 0 || matrix.kind !== "dense" || role.cols % groupSize !== 0) return matrix;
  const { file, name } = presentTensor(checkpoint, `${role.path}.weight`, take);
  return quantizedMatrix(matrix, { bits, groupSize }, { file, name });
}

function drafterVector(
  checkpoint: DrafterCheckpoint,
  role: DrafterVectorRole,
  take: TakeTensor,
): StoredTensor {
  const tensor = presentTensor(checkpoint, role.tensor, take);
  checkShape(tensor, role.shape);
  return tensor;
}

function refuseStrays({ tensors }: DrafterCheckpoint, used: ReadonlySet<StoredTensor>): void {
  for (const [name, tensor] of tensors) {
    if (used.has(tensor) || name.endsWith("rotary_emb.inv_freq")) continue;
    throw new CheckpointError(
      tensor.file,
      `tensor ${name} has no place in the drafter that config.json describes`,
    );
  }
}
