import { type DrafterShape, drafterSizes } from "./drafter-shape.ts";
import { addProjection, head, norm, type Projection, project, type Step } from "./forward.ts";

/*
 * A block drafter as data, of the same kind as the forward pass (z-lab's DFlash and DFlash2;
 * `docs/drafters.md` has the equations). Its own tensors' paths begin with `draft.`; `embed_tokens`
 * and `lm_head` are the target's.
 */

/** What a drafter's paths begin with. */
export const draftPrefix = "draft.";

const layerPath = (index: number): string => `${draftPrefix}layers.${index}`;

/**
 * Gives the drafter rows of context: f = N_hidden(W_fc · features), then every layer's keys and values
 * of f. A row of context has no residual stream and is computed once.
 */
export function contextSteps(shape: DrafterShape): Step[] {
  const { kvDim } = drafterSizes(shape);
  const projections = shape.layers.flatMap((_, index): Projection[] => {
    const attention = `${layerPath(index)}.self_attn`;
    const outAt = index * kvDim;
    return [
      { matrix: `${attention}.k_proj`, out: "contextKeys", accumulate: false, outAt },
      { matrix: `${attention}.v_proj`, out: "contextValues", accumulate: false, outAt },
    ];
  });
  return [
    { op: "gather" },
    project("features", [[`${draftPrefix}fc`, "fused"]]),
    norm("fused", `${draftPrefix}hidden_norm`, "context"),
    { op: "project", input: "context", projections, rows: "all" },
    { op: "contextRope" },
  ];
}

/**
 * Predicts a block: rows [anchor, mask, …] at the positions behind the context. A row that draws predicts
 * the token of its own position. `headRows` is how many tokens, from id 0 on, the head may propose.
 */
export function blockSteps(shape: DrafterShape, headRows: number): Step[] {
  const steps: Step[] = [{ op: "embed", matrix: "embed_tokens", out: "hidden" }];
  shape.layers.forEach((_, index) => {
    steps.push(...attentionPart(shape, index), ...mlpPart(shape, index));
  });
  steps.push(norm("hidden", `${draftPrefix}norm`, "normedDraw", "draws"));
  steps.push(head(headRows));
  if (shape.selector) {
    const path = `${draftPrefix}candidate_selector.hidden_projection`;
    steps.push(project("normedDraw", [[path, "selector"]], "draws"));
  }
  return steps;
}

/** hidden += conv₁(W_o · attention(conv₀(N(hidden)))); DFlash has no convolutions. */
function attentionPart(shape: DrafterShape, index: number): Step[] {
  const layer = layerPath(index);
  const module = `${layer}.self_attn`;
  const convolved = shape.convolution !== null;
  return [
    norm("hidden", `${layer}.input_layernorm`, "normed"),
    ...(convolved ? convolveIn(`${layer}.attention_conv`) : []),
    project(convolved ? "draftMixed" : "normed", [
      [`${module}.q_proj`, "draftQuery"],
      [`${module}.k_proj`, "draftKey"],
      [`${module}.v_proj`, "draftValue"],
    ]),
    { op: "draftRope", module, draftLayer: index },
    { op: "draftAttend", draftLayer: index },
    ...(convolved
      ? convolveOut("draftAttended", `${module}.o_proj`, `${layer}.attention_conv`)
      : [addProjection("draftAttended", `${module}.o_proj`)]),
  ];
}

/** hidden += conv₁(W_down · (silu(W_gate u) ⊙ W_up u)), u = conv₀(N(hidden)). */
function mlpPart(shape: DrafterShape, index: number): Step[] {
  const layer = layerPath(index);
  const convolved = shape.convolution !== null;
  return [
    norm("hidden", `${layer}.post_attention_layernorm`, "normed"),
    ...(convolved ? convolveIn(`${layer}.mlp_conv`) : []),
    project(convolved ? "draftMixed" : "normed", [
      [`${layer}.mlp.gate_proj`, "draftGate"],
      [`${layer}.mlp.up_proj`, "draftUp"],
    ]),
    { op: "swiglu", gate: "draftGate", up: "draftUp" },
    ...(convolved
      ? convolveOut("draftGate", `${layer}.mlp.down_proj`, `${layer}.mlp_conv`)
      : [addProjection("draftGate", `${layer}.mlp.down_proj`)]),
  ];
}

/** Both sides of a sublayer use the kernels that its input gives. */
function convolveIn(module: string): Step[] {
  const base = `${module}.base_kernel`;
  return [
    project("normed", [[`${module}.kernel_projection`, "draftKernel"]]),
    { op: "dynamicConv", base, side: 0, input: "normed", out: "draftMixed", accumulate: false },
  ];
}

function convolveOut(input: "draftAttended" | "draftGate", matrix: string, module: string): Step[] {
  const base = `${module}.base_kernel`;
  return [
    project(input, [[matrix, "draftOut"]]),
    { op: "dynamicConv", base, side: 1, input: "draftOut", out: "hidden", accumulate: true },
  ];
}
