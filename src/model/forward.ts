import { derivedSizes, type ModelShape } from "./shape.ts";

/**
 * The forward pass as data: a list of steps over named row buffers, which every backend executes in
 * its own way. The equations are those of transformers' `qwen3_5` (`docs/exactness.md` gives the
 * order of every sum). A row buffer holds one row of floats per row of the pass.
 */
export type RowBuffer =
  | "hidden" // residual stream
  | "normed" // its RMSNorm
  | "qkv" // GDN: raw q, k, v, before the convolution
  | "z" // GDN: output gate
  | "b" // GDN: β before the sigmoid
  | "a" // GDN: decay input
  | "conv" // GDN: q, k, v after convolution, SiLU and head norm
  | "gates" // GDN: (g, β) per value head
  | "delta" // GDN: output of the scan
  | "mixed" // GDN: normed and gated, before its projection
  | "queryGate" // attention: per head a query, then its gate
  | "key"
  | "value"
  | "query" // attention: normed and rotated queries
  | "attended" // attention: gated output, before its projection
  | "gate" // MLP
  | "up"
  | "normedDraw" // the next two exist only for the rows that draw
  | "logits";

/** A projection: out (+)= W · in. */
export interface Projection {
  readonly matrix: string;
  readonly out: RowBuffer;
  readonly accumulate: boolean;
}

export type Step =
  | { readonly op: "embed"; readonly matrix: string; readonly out: RowBuffer }
  | { readonly op: "tap"; readonly input: RowBuffer; readonly tap: number }
  | {
      readonly op: "norm";
      readonly input: RowBuffer;
      readonly weight: string;
      readonly out: RowBuffer;
      readonly rows: "all" | "draws";
    }
  | {
      readonly op: "project";
      readonly input: RowBuffer;
      readonly projections: readonly Projection[];
      readonly rows: "all" | "draws";
    }
  /** qkv, b, a → conv, gates; reads the slot's conv history of `linearLayer`. */
  | { readonly op: "conv"; readonly module: string; readonly linearLayer: number }
  /** conv, gates → delta; advances the state of `linearLayer`, publishes its conv history. */
  | { readonly op: "scan"; readonly linearLayer: number }
  /** delta, z → mixed. */
  | { readonly op: "gatedNorm"; readonly weight: string }
  /** queryGate, key, value → query, and the KV pages of `fullLayer`. */
  | { readonly op: "rope"; readonly module: string; readonly fullLayer: number }
  /** query, queryGate, KV pages → attended. */
  | { readonly op: "attend"; readonly fullLayer: number }
  /** gate, up → gate. */
  | { readonly op: "swiglu" };

/** Floats of each row buffer. */
export function bufferWidths(shape: ModelShape): Readonly<Record<RowBuffer, number>> {
  const sizes = derivedSizes(shape);
  return {
    hidden: shape.hiddenSize,
    normed: shape.hiddenSize,
    qkv: sizes.convDim,
    z: sizes.valueDim,
    b: shape.linearValueHeads,
    a: shape.linearValueHeads,
    conv: sizes.convDim,
    gates: 2 * shape.linearValueHeads,
    delta: sizes.valueDim,
    queryGate: sizes.queryGateDim,
    key: sizes.kvDim,
    value: sizes.kvDim,
    query: sizes.attentionDim,
    mixed: sizes.valueDim,
    attended: sizes.attentionDim,
    gate: shape.intermediateSize,
    up: shape.intermediateSize,
    normedDraw: shape.hiddenSize,
    logits: shape.vocabSize,
  };
}

/**
 * The steps of a pass. `taps` lists hidden states to keep aside: tap i is the residual stream after
 * i layers (0 is the embedding).
 */
export function forwardSteps(shape: ModelShape, taps: readonly number[]): Step[] {
  const steps: Step[] = [{ op: "embed", matrix: "embed_tokens", out: "hidden" }];
  const tapAfter = (layers: number) => {
    if (taps.includes(layers)) steps.push({ op: "tap", input: "hidden", tap: layers });
  };
  tapAfter(0);
  let linearLayer = 0;
  let fullLayer = 0;
  shape.layerTypes.forEach((type, index) => {
    const layer = `layers.${index}`;
    if (type === "linear") steps.push(...deltaMixer(layer, linearLayer++));
    else steps.push(...attentionMixer(layer, fullLayer++));
    steps.push(...mlp(layer));
    tapAfter(index + 1);
  });
  steps.push(norm("hidden", "norm", "normedDraw", "draws"));
  steps.push(project("normedDraw", [["lm_head", "logits"]], "draws"));
  return steps;
}

/** All matrices, the embedding's first. A tied head is that one once more. */
export const matrixPaths = (shape: ModelShape): string[] => [
  "embed_tokens",
  ...projectionPaths(shape),
];

/** The matrices of all projections, in the order of the steps; the embedding's is not among them. */
export const projectionPaths = (shape: ModelShape): string[] =>
  forwardSteps(shape, []).flatMap((step) =>
    step.op === "project" ? step.projections.map(({ matrix }) => matrix) : [],
  );

/** hidden += W_out · gatedNorm(scan(conv(W_qkv u), gates(W_b u, W_a u)), W_z u), u = N(hidden). */
function deltaMixer(layer: string, linearLayer: number): Step[] {
  const module = `${layer}.linear_attn`;
  return [
    norm("hidden", `${layer}.input_layernorm`, "normed"),
    project("normed", [
      [`${module}.in_proj_qkv`, "qkv"],
      [`${module}.in_proj_z`, "z"],
      [`${module}.in_proj_b`, "b"],
      [`${module}.in_proj_a`, "a"],
    ]),
    { op: "conv", module, linearLayer },
    { op: "scan", linearLayer },
    { op: "gatedNorm", weight: `${module}.norm` },
    addProjection("mixed", `${module}.out_proj`),
  ];
}

/** hidden += W_o · (softmax(q Kᵀ / √d) V ⊙ sigmoid(gate)), on u = N(hidden). */
function attentionMixer(layer: string, fullLayer: number): Step[] {
  const module = `${layer}.self_attn`;
  return [
    norm("hidden", `${layer}.input_layernorm`, "normed"),
    project("normed", [
      [`${module}.q_proj`, "queryGate"],
      [`${module}.k_proj`, "key"],
      [`${module}.v_proj`, "value"],
    ]),
    { op: "rope", module, fullLayer },
    { op: "attend", fullLayer },
    addProjection("attended", `${module}.o_proj`),
  ];
}

/** hidden += W_down · (silu(W_gate u) ⊙ W_up u), u = N(hidden). */
function mlp(layer: string): Step[] {
  return [
    norm("hidden", `${layer}.post_attention_layernorm`, "normed"),
    project("normed", [
      [`${layer}.mlp.gate_proj`, "gate"],
      [`${layer}.mlp.up_proj`, "up"],
    ]),
    { op: "swiglu" },
    addProjection("gate", `${layer}.mlp.down_proj`),
  ];
}

function norm(
  input: RowBuffer,
  weight: string,
  out: RowBuffer,
  rows: "all" | "draws" = "all",
): Step {
  return { op: "norm", input, weight, out, rows };
}

function project(
  input: RowBuffer,
  outputs: readonly (readonly [matrix: string, out: RowBuffer])[],
  rows: "all" | "draws" = "all",
): Step {
  const projections = outputs.map(([matrix, out]) => ({ matrix, out, accumulate: false }));
  return { op: "project", input, projections, rows };
}

function addProjection(input: RowBuffer, matrix: string): Step {
  return {
    op: "project",
    input,
    projections: [{ matrix, out: "hidden", accumulate: true }],
    rows: "all",
  };
}
