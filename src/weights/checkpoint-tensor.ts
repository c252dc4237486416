import type { Fp8Blocks, QuantizationConfig } from "../checkpoint/config-quantization.ts";
import type { Folder } from "../checkpoint/source.ts";
import type { StoredTensor } from "../checkpoint/tensors.ts";
import { CheckpointError, invariant } from "../errors.ts";
import type { MatrixRole } from "./roles.ts";
import type { FloatType } from "./weights.ts";

/** What a checkpoint's tensors are looked up and checked with, a model's and a drafter's. */
export interface TensorOwner {
  readonly folder: Folder;
  readonly config: {
    readonly quantization: QuantizationConfig | null;
    /** Of a model alone; drafters are refused by their config. */
    readonly fp8?: Fp8Blocks | null;
  };
}

/** Finds a tensor by its bare name and notes that it is used. */
export type TakeTensor = (name: string) => StoredTensor | undefined;

const floatTypes: ReadonlyMap<string, FloatType> = new Map([
  ["BF16", "bf16"],
  ["F16", "f16"],
  ["F32", "f32"],
]);

/** @throws CheckpointError naming the tensor that is missing */
export function presentTensor(
  checkpoint: TensorOwner,
  name: string,
  take: TakeTensor,
): StoredTensor {
  const tensor = take(name);
  if (tensor !== undefined) return tensor;
  throw new CheckpointError(checkpoint.folder.name, `has no tensor ${name}`);
}

/** @throws CheckpointError when the tensor is not of floats that are read */
export function floatType(tensor: StoredTensor): FloatType {
  const type = floatTypes.get(tensor.dtype);
  if (type !== undefined) return type;
  throw new CheckpointError(
    tensor.file,
    `tensor ${tensor.name}: dtype ${tensor.dtype}, expected ${[...floatTypes.keys()].join(", ")}`,
  );
}

/** @throws CheckpointError with the expected and the found shape */
export function checkShape(tensor: StoredTensor, expected: readonly number[]): void {
  const found = tensor.shape;
  if (found.length === expected.length && found.every((size, i) => size === expected[i])) return;
  throw new CheckpointError(
    tensor.file,
    `tensor ${tensor.name}: shape [${found.join(", ")}], expected [${expected.join(", ")}]`,
  );
}

/** A range of rows that leaves the matrix is a bug of ours. */
export function checkRows(role: MatrixRole, firstRow: number, rowCount: number): void {
  const inside = firstRow >= 0 && rowCount >= 0 && firstRow + rowCount <= role.rows;
  invariant(inside, `${role.path}: rows ${firstRow} + ${rowCount} of ${role.rows}`);
}
