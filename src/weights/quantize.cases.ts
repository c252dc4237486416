import { type AffineFormat, type QuantizedGroups, quantizeRuns } from "./affine.ts";

/** Quantises values that are there already. */
export const quantizeGroups = (values: Float32Array, format: AffineFormat): QuantizedGroups =>
  quantizeRuns(values.length, format, (run, start) =>
    run.set(values.subarray(start, start + run.length)),
  );
