import { namedShape, shapeNames } from "../../model/released-shapes.ts";
import { derivedSizes } from "../../model/shape.ts";
import { planWeights } from "../../node.ts";
import { randomWeights } from "../../weights/random.ts";
import { readBytesOf } from "../../weights/read-bytes.ts";
import type { Weights } from "../../weights/weights.ts";

/** A released size in 4 bits, and the most tokens a second that reading it allows. */
export interface SpeedLimit {
  readonly shape: string;
  /** Null where it doesn't fit a WebAssembly memory. */
  readonly cpu_tokens_per_second: number | null;
  /** Null without a GPU. */
  readonly gpu_tokens_per_second: number | null;
}

/** Plain decoding reads all weights and reads and writes the state for each token, and can't be faster. */
export async function speedLimits(
  cpuBytes: number,
  gpuBytes: number | null,
): Promise<SpeedLimit[]> {
  const limits = shapeNames.map(async (name): Promise<SpeedLimit> => {
    const shape = namedShape(name)!;
    const { linearLayers, stateFloats } = derivedSizes(shape);
    const weights = randomWeights(shape, { seed: 1, bits: 4 });
    const bytes = readBytesOf(weights) + 2 * 4 * linearLayers * stateFloats;
    const rate = (bytesPerSecond: number) => Number((bytesPerSecond / bytes).toPrecision(2));
    return {
      shape: name,
      cpu_tokens_per_second: (await fitsWasm(weights)) ? rate(cpuBytes) : null,
      gpu_tokens_per_second: gpuBytes === null ? null : rate(gpuBytes),
    };
  });
  return await Promise.all(limits);
}

/** Whether its address space holds them, however little memory is free. */
async function fitsWasm(weights: Weights): Promise<boolean> {
  const least = { parallel: 1, promptCacheBytes: 0, memoryBytes: Number.MAX_SAFE_INTEGER };
  return (await planWeights(weights, null, { backend: "wasm", ...least })).refusal === null;
}
