import type { ModelShape } from "./shape.ts";

/** A small hybrid for gates and tests: every kind of layer, three value heads a key head. */
export function tinyShape(changes: Partial<ModelShape> = {}): ModelShape {
  return {
    vocabSize: 300,
    hiddenSize: 128,
    intermediateSize: 192,
    layerTypes: ["linear", "linear", "full", "linear"],
    headCount: 4,
    kvHeadCount: 2,
    headDim: 32,
    rotaryDim: 8,
    ropeTheta: 10_000,
    linearKeyHeads: 2,
    linearValueHeads: 6,
    linearKeyDim: 32,
    linearValueDim: 32,
    convTaps: 4,
    normEps: 1e-6,
    tiedHead: false,
    contextMax: 1024,
    ...changes,
  };
}
