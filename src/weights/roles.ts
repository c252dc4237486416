import { derivedSizes, type ModelShape } from "../model/shape.ts";

/** A matrix [rows, cols] that a model of some shape must have. */
export interface MatrixRole {
  readonly path: string;
  readonly rows: number;
  readonly cols: number;
}

/**
 * A small tensor that a model must have.
 * - `centred`: a norm weight that Hugging Face files store as w and the model uses as 1 + w
 * - `conv`: [channels, taps], stored with an axis of length 1 whose place tells the layout
 * - `plain`: used as stored
 */
export interface VectorRole {
  readonly path: string;
  /** The tensor's name without the checkpoint's prefix. */
  readonly tensor: string;
  readonly kind: "centred" | "conv" | "plain";
  readonly shape: readonly number[];
}

/** Every matrix of a model, in the order of the forward pass. `lm_head` only when it is its own. */
export function matrixRoles(shape: ModelShape): MatrixRole[] {
  const { hiddenSize, intermediateSize, vocabSize } = shape;
  const roles = [{ path: "embed_tokens", rows: vocabSize, cols: hiddenSize }];
  for (const [index, type] of shape.layerTypes.entries()) {
    const layer = `layers.${index}`;
    for (const role of mixerMatrices(shape, type)) {
      roles.push({ ...role, path: `${layer}.${role.path}` });
    }
    roles.push(
      { path: `${layer}.mlp.gate_proj`, rows: intermediateSize, cols: hiddenSize },
      { path: `${layer}.mlp.up_proj`, rows: intermediateSize, cols: hiddenSize },
      { path: `${layer}.mlp.down_proj`, rows: hiddenSize, cols: intermediateSize },
    );
  }
  if (!shape.tiedHead) roles.push({ path: "lm_head", rows: vocabSize, cols: hiddenSize });
  return roles;
}

/** Every small tensor of a model, in the order of the forward pass. */
export function vectorRoles(shape: ModelShape): VectorRole[] {
  const { convDim } = derivedSizes(shape);
  const roles: VectorRole[] = [];
  const add = (path: string, kind: VectorRole["kind"], dims: number[], suffix = ".weight") =>
    roles.push({ path, tensor: path + suffix, kind, shape: dims });
  for (const [index, type] of shape.layerTypes.entries()) {
    const layer = `layers.${index}`;
    add(`${layer}.input_layernorm`, "centred", [shape.hiddenSize]);
    if (type === "linear") {
      const mixer = `${layer}.linear_attn`;
      add(`${mixer}.conv1d`, "conv", [convDim, shape.convTaps]);
      add(`${mixer}.A_log`, "plain", [shape.linearValueHeads], "");
      add(`${mixer}.dt_bias`, "plain", [shape.linearValueHeads], "");
      add(`${mixer}.norm`, "plain", [shape.linearValueDim]);
    } else {
      add(`${layer}.self_attn.q_norm`, "centred", [shape.headDim]);
      add(`${layer}.self_attn.k_norm`, "centred", [shape.headDim]);
    }
    add(`${layer}.post_attention_layernorm`, "centred", [shape.hiddenSize]);
  }
  add("norm", "centred", [shape.hiddenSize]);
  return roles;
}

function mixerMatrices(shape: ModelShape, type: "linear" | "full"): MatrixRole[] {
  const sizes = derivedSizes(shape);
  const cols = shape.hiddenSize;
  if (type === "full") {
    return [
      { path: "self_attn.q_proj", rows: sizes.queryGateDim, cols },
      { path: "self_attn.k_proj", rows: sizes.kvDim, cols },
      { path: "self_attn.v_proj", rows: sizes.kvDim, cols },
      { path: "self_attn.o_proj", rows: cols, cols: sizes.attentionDim },
    ];
  }
  return [
    { path: "linear_attn.in_proj_qkv", rows: sizes.convDim, cols },
    { path: "linear_attn.in_proj_z", rows: sizes.valueDim, cols },
    { path: "linear_attn.in_proj_b", rows: shape.linearValueHeads, cols },
    { path: "linear_attn.in_proj_a", rows: shape.linearValueHeads, cols },
    { path: "linear_attn.out_proj", rows: cols, cols: sizes.valueDim },
  ];
}
