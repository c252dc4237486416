import { openCheckpoint } from "../../checkpoint/checkpoint.ts";
import { openFolder } from "../../checkpoint/source-node.ts";
import { modelFolder } from "../../node.ts";
import { weightsFromCheckpoint } from "../../weights/from-checkpoint.ts";
import type { Weights } from "../../weights/weights.ts";

/** Calls `use` with a model's weights, whose files are open for as long as it takes. */
export async function withWeights<T>(
  model: string,
  use: (weights: Weights) => Promise<T>,
): Promise<T> {
  await using checkpoint = await openCheckpoint(await openFolder(modelFolder(model)));
  return await use(await weightsFromCheckpoint(checkpoint));
}
