import type { StoredTensor } from "../checkpoint/tensors.ts";
import type { DrafterShape } from "../model/drafter-shape.ts";
import {
  checkShape,
  floatType,
  presentTensor,
  type TakeTensor,
  type TensorOwner,
} from "./checkpoint-tensor.ts";
import { bytesOf, narrowToBf16, widen } from "./floats.ts";

/** A DFlash2 drafter's tables of how well tokens follow each other. */
export interface StoredCodebooks {
  readonly rank: number;
  /** [vocabSize, rank] of bf16, little-endian. */
  readonly predecessor: Uint8Array;
  readonly successor: Uint8Array;
}

/** Checks a drafter's codebooks and returns what reads them; null for one without. */
export function openCodebooks(
  checkpoint: TensorOwner,
  { vocabSize, selector }: DrafterShape,
  take: TakeTensor,
): (() => Promise<StoredCodebooks>) | null {
  if (!selector) return null;
  const { rank } = selector;
  const table = (name: string) => {
    const path = `candidate_selector.${name}_codebook`;
    const tensor = take(path) ?? presentTensor(checkpoint, `${path}.weight`, take);
    floatType(tensor);
    checkShape(tensor, [vocabSize, rank]);
    return tensor;
  };
  const predecessor = table("predecessor");
  const successor = table("successor");
  return async () => ({
    rank,
    predecessor: await readBf16(predecessor),
    successor: await readBf16(successor),
  });
}

/** Other floats are rounded, as the drafter's own code does in bf16. */
async function readBf16(tensor: StoredTensor): Promise<Uint8Array> {
  const type = floatType(tensor);
  const bytes = await tensor.read(0, tensor.bytes);
  return type === "bf16" ? bytes : bytesOf(narrowToBf16(widen(bytes, type)));
}
