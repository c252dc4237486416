/** The sizes of a `qwen3_5` hybrid model: everything that the forward pass needs to know of it. */
export interface ModelShape {
  readonly vocabSize: number;
  readonly hiddenSize: number;
  readonly intermediateSize: number;
  /** One entry a layer: Gated DeltaNet ("linear") or full attention. */
  readonly layerTypes: readonly LayerType[];
  readonly headCount: number;
  readonly kvHeadCount: number;
  readonly headDim: number;
  /** Leading dims of a head that rotate; pairs are (i, i + rotaryDim / 2). */
  readonly rotaryDim: number;
  readonly ropeTheta: number;
  readonly linearKeyHeads: number;
  readonly linearValueHeads: number;
  readonly linearKeyDim: number;
  readonly linearValueDim: number;
  /** Taps of the causal depthwise convolution, the current row included. */
  readonly convTaps: number;
  readonly normEps: number;
  /** The head is the embedding matrix. */
  readonly tiedHead: boolean;
  /** Longest sequence the checkpoint claims to support, in tokens. */
  readonly contextMax: number;
}

export type LayerType = "linear" | "full";

/** Widths that follow from the shape. */
export interface DerivedSizes {
  /** linearKeyHeads × linearKeyDim. */
  readonly keyDim: number;
  /** linearValueHeads × linearValueDim. */
  readonly valueDim: number;
  /** Channels of the convolution: q, k and v side by side. */
  readonly convDim: number;
  /** Rows of q_proj: each head's query followed by its output gate. */
  readonly queryGateDim: number;
  readonly attentionDim: number;
  readonly kvDim: number;
  readonly linearLayers: number;
  readonly fullLayers: number;
  /** Floats of one slot's recurrent state in one linear layer: [value heads, key dim, value dim]. */
  readonly stateFloats: number;
  /** Floats of one slot's conv history in one linear layer: the last convTaps − 1 raw qkv rows. */
  readonly historyFloats: number;
}

export function derivedSizes(shape: ModelShape): DerivedSizes {
  const keyDim = shape.linearKeyHeads * shape.linearKeyDim;
  const valueDim = shape.linearValueHeads * shape.linearValueDim;
  const convDim = 2 * keyDim + valueDim;
  const attentionDim = shape.headCount * shape.headDim;
  return {
    keyDim,
    valueDim,
    convDim,
    queryGateDim: 2 * attentionDim,
    attentionDim,
    kvDim: shape.kvHeadCount * shape.headDim,
    linearLayers: shape.layerTypes.filter((type) => type === "linear").length,
    fullLayers: shape.layerTypes.filter((type) => type === "full").length,
    stateFloats: shape.linearValueHeads * shape.linearKeyDim * shape.linearValueDim,
    historyFloats: (shape.convTaps - 1) * convDim,
  };
}
