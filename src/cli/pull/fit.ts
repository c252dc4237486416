import { sumOf } from "../../backend/memory-use.ts";
import { type CheckpointConfig, readConfig } from "../../checkpoint/config.ts";
import { isDrafterFolder } from "../../checkpoint/drafter-kind.ts";
import type { Folder } from "../../checkpoint/source.ts";
import { CheckpointError } from "../../errors.ts";
import { type ModelPlan, type OpenOptions, planWeights } from "../../node.ts";
import { bitsAllowed, groupSizesAllowed } from "../../weights/affine.ts";
import { type RandomOptions, randomWeights } from "../../weights/random.ts";
import { bytesText } from "../format.ts";

/** Whether a model will fit this machine, as far as its config tells. */
export interface Fit {
  readonly fits: boolean;
  readonly text: string;
}

/**
 * Plans a model whose weights needn't be there: one of its shape and bits takes as much.
 * @param folder of the config
 * @throws CheckpointError for a model that can't be loaded; InputError, BackendError for options that can't
 */
export async function fitOf(folder: Folder, options: OpenOptions): Promise<Fit> {
  if (await isDrafterFolder(folder)) {
    return { fits: true, text: "a drafter's share, beside its model's" };
  }
  const { shape, ...config } = await readConfig(folder);
  if (options.backend === "reference") return { fits: true, text: "that of the reference backend" };
  const weights = randomWeights(shape, { seed: 1, ...formatOf(folder, config) });
  return fitText(await planWeights(weights, null, options));
}

/** Of most of the weights; a few may differ. */
function formatOf(
  folder: Folder,
  { quantization, fp8 }: Pick<CheckpointConfig, "quantization" | "fp8">,
): Omit<RandomOptions, "seed"> {
  if (fp8) return { bits: 8 };
  if (!quantization) return { bits: "bf16" };
  const bits = bitsAllowed.find((each) => each === quantization.bits);
  const groupSize = groupSizesAllowed.find((each) => each === quantization.groupSize);
  if (bits && groupSize) return { bits, groupSize };
  const format = `${quantization.bits} bits in groups of ${quantization.groupSize}`;
  throw new CheckpointError(folder.name, `is quantised to ${format}, which is not read`);
}

function fitText({ refusal, memory, sizes, roomBytes }: ModelPlan): Fit {
  if (refusal !== null) return { fits: false, text: `it does not fit: ${refusal}` };
  const needed = bytesText(sumOf(memory) + sizes.promptCacheBytes);
  const use = `about ${needed} with a context of ${sizes.contextTokens} tokens`;
  if (roomBytes === null) return { fits: true, text: `${use}; what the GPU has, nobody knows` };
  return { fits: true, text: `${use}, of ${bytesText(roomBytes)} that are free: it fits` };
}
