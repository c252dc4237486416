import { type DrafterShape, drafterSizes } from "../model/drafter-shape.ts";
import type { MatrixRole } from "./roles.ts";

/** A small tensor of a drafter, used as stored. */
export interface DrafterVectorRole {
  readonly path: string;
  /** The tensor's name. */
  readonly tensor: string;
  readonly shape: readonly number[];
}

/** Every matrix that a drafter of this shape must have; its codebooks are none of them. */
export function drafterMatrixRoles(shape: DrafterShape): MatrixRole[] {
  const { hiddenSize: cols, intermediateSize, convolution, selector } = shape;
  const sizes = drafterSizes(shape);
  const roles: MatrixRole[] = [{ path: "fc", rows: cols, cols: sizes.featureDim }];
  shape.layers.forEach((_, index) => {
    const add = (path: string, rows: number, width = cols) =>
      roles.push({ path: `layers.${index}.${path}`, rows, cols: width });
    add("self_attn.q_proj", sizes.attentionDim);
    add("self_attn.k_proj", sizes.kvDim);
    add("self_attn.v_proj", sizes.kvDim);
    add("self_attn.o_proj", cols, sizes.attentionDim);
    add("mlp.gate_proj", intermediateSize);
    add("mlp.up_proj", intermediateSize);
    add("mlp.down_proj", cols, intermediateSize);
    if (convolution) {
      add("attention_conv.kernel_projection", sizes.kernelDim);
      add("mlp_conv.kernel_projection", sizes.kernelDim);
    }
  });
  if (selector)
    roles.push({ path: "candidate_selector.hidden_projection", rows: selector.rank, cols });
  return roles;
}

/** Every small tensor that a drafter of this shape must have. */
export function drafterVectorRoles(shape: DrafterShape): DrafterVectorRole[] {
  const { hiddenSize, headDim, convolution } = shape;
  const roles: DrafterVectorRole[] = [];
  const addNorm = (path: string, width = hiddenSize) =>
    roles.push({ path, tensor: `${path}.weight`, shape: [width] });
  addNorm("hidden_norm");
  shape.layers.forEach((_, index) => {
    const layer = `layers.${index}`;
    addNorm(`${layer}.input_layernorm`);
    addNorm(`${layer}.post_attention_layernorm`);
    addNorm(`${layer}.self_attn.q_norm`, headDim);
    addNorm(`${layer}.self_attn.k_norm`, headDim);
    for (const part of convolution ? ["attention_conv", "mlp_conv"] : []) {
      const path = `${layer}.${part}.base_kernel`;
      roles.push({ path, tensor: path, shape: [2, 2, hiddenSize] });
    }
  });
  addNorm("norm");
  return roles;
}
