import { namedShape, shapeNames } from "../../model/released-shapes.ts";
import { derivedSizes } from "../../model/shape.ts";
import { randomWeights } from "../../weights/random.ts";
import { readBytesOf } from "../../weights/read-bytes.ts";

/** A released size in 4 bits, and the most tokens a second that reading it allows. */
export interface SpeedLimit {
  readonly shape: string;
  readonly cpu_tokens_per_second: number;
  /** Null without a GPU. */
  readonly gpu_tokens_per_second: number | null;
}

/** Plain decoding reads all weights and reads and writes the state for each token, and can't be faster. */
export function speedLimits(cpuBytes: number, gpuBytes: number | null): SpeedLimit[] {
  return shapeNames.map((name) => {
    const shape = namedShape(name)!;
    const { linearLayers, stateFloats } = derivedSizes(shape);
    const weights = randomWeights(shape, { seed: 1, bits: 4 });
    const bytes = readBytesOf(weights) + 2 * 4 * linearLayers * stateFloats;
    const rate = (bytesPerSecond: number) => Number((bytesPerSecond / bytes).toPrecision(2));
    return {
      shape: name,
      cpu_tokens_per_second: rate(cpuBytes),
      gpu_tokens_per_second: gpuBytes === null ? null : rate(gpuBytes),
    };
  });
}
