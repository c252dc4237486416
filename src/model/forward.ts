import { type DrafterShape, drafterSizes } from "./drafter-shape.ts";
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
  | "logits"
  | DraftBuffer;

/** Row buffers of the drafter's own; it uses hidden, normed, normedDraw and logits too. */
export type DraftBuffer =
  | "features" // of a row of context: the hidden states behind the feature layers, side by side
  | "fused" // their projection
  | "context" // its RMSNorm, which every layer's keys and values come from
  | "contextKeys" // of all layers, side by side
  | "contextValues"
  | "draftKernel" // DFlash2: the dynamic kernels of a sublayer
  | "draftMixed" // DFlash2: normed, convolved
  | "draftQuery"
  | "draftKey"
  | "draftValue"
  | "draftRotated" // normed and rotated queries
  | "draftAttended"
  | "draftOut" // DFlash2: output of a sublayer before its convolution
  | "draftGate"
  | "draftUp"
  | "selector"; // DFlash2: what candidates are scored with; for the rows that draw

/** A projection: out (+)= W · in. */
export interface Projection {
  readonly matrix: string;
  readonly out: RowBuffer;
  readonly accumulate: boolean;
  /** The first float of the out row that it fills; 0 unless said. */
  readonly outAt?: number;
  /** How many of the matrix's rows are computed, from the first; all unless said. */
  readonly rows?: number;
}

/** A step of the target's pass, of a pass that extends the drafter's context, or of a draft pass. */
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
  /** silu(gate) ⊙ up → gate. */
  | { readonly op: "swiglu"; readonly gate: RowBuffer; readonly up: RowBuffer }
  | DraftStep;

export type DraftStep =
  /** Keeps hidden as feature `index` of the row's place, in the slot's features. */
  | { readonly op: "feature"; readonly index: number }
  /** The slot's features of each row's place → features. */
  | { readonly op: "gather" }
  /**
   * out[i, c] (+)= (base[side, 0, c] + Δ[i, side, 0, γ])·x[i, c] + (base[side, 1, c] + Δ[i, side, 1, γ])·x[i − 1, c],
   * with Δ of draftKernel, γ = ⌊c / group⌋, and zero before a segment's first row.
   */
  | {
      readonly op: "dynamicConv";
      readonly base: string;
      readonly side: 0 | 1;
      readonly input: RowBuffer;
      readonly out: RowBuffer;
      readonly accumulate: boolean;
    }
  /** contextKeys, contextValues → normed and rotated, the drafter's KV pages of every layer. */
  | { readonly op: "contextRope" }
  /** draftQuery, draftKey, draftValue → draftRotated, and the drafter's KV pages of `draftLayer`. */
  | { readonly op: "draftRope"; readonly module: string; readonly draftLayer: number }
  /** draftRotated, the drafter's KV pages → draftAttended. */
  | { readonly op: "draftAttend"; readonly draftLayer: number };

/** The buffers that only rows that draw have. */
export const isDrawBuffer = (name: RowBuffer): boolean =>
  name === "normedDraw" || name === "logits" || name === "selector";

/** Floats of each row buffer that a model, and its drafter where there is one, needs. */
export function bufferWidths(
  shape: ModelShape,
  drafter: DrafterShape | null,
): ReadonlyMap<RowBuffer, number> {
  const widths = { ...targetWidths(shape), ...(drafter && draftWidths(drafter)) };
  const entries = Object.entries(widths) as [RowBuffer, number][];
  return new Map(entries.filter(([, width]) => width > 0));
}

function draftWidths(shape: DrafterShape): Record<DraftBuffer, number> {
  const { attentionDim, kvDim, featureDim, kernelDim } = drafterSizes(shape);
  const { hiddenSize, intermediateSize, layers, convolution, selector } = shape;
  const convolved = convolution ? hiddenSize : 0;
  return {
    features: featureDim,
    fused: hiddenSize,
    context: hiddenSize,
    contextKeys: layers.length * kvDim,
    contextValues: layers.length * kvDim,
    draftKernel: kernelDim,
    draftMixed: convolved,
    draftQuery: attentionDim,
    draftKey: kvDim,
    draftValue: kvDim,
    draftRotated: attentionDim,
    draftAttended: attentionDim,
    draftOut: convolved,
    draftGate: intermediateSize,
    draftUp: intermediateSize,
    selector: selector?.rank ?? 0,
  };
}

function targetWidths(shape: ModelShape): Record<Exclude<RowBuffer, DraftBuffer>, number> {
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

/** Logits of the first `tokens` tokens, of the rows that draw. */
export function head(tokens: number): Step {
  const projection = { matrix: "lm_head", out: "logits", accumulate: false, rows: tokens } as const;
  return { op: "project", input: "normedDraw", projections: [projection], rows: "draws" };
}

/**
 * The steps of a pass. `taps` lists hidden states to keep aside: tap i is the residual stream after
 * i layers (0 is the embedding). `featureLayers` are a drafter's.
 */
export function forwardSteps(
  shape: ModelShape,
  taps: readonly number[],
  featureLayers: readonly number[] = [],
): Step[] {
  const steps: Step[] = [{ op: "embed", matrix: "embed_tokens", out: "hidden" }];
  const tapAfter = (layers: number) => {
    if (taps.includes(layers)) steps.push({ op: "tap", input: "hidden", tap: layers });
    featureLayers.forEach((layer, index) => {
      if (layer + 1 === layers) steps.push({ op: "feature", index });
    });
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
  steps.push(head(shape.vocabSize));
  return steps;
}

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
    { op: "swiglu", gate: "gate", up: "up" },
    addProjection("gate", `${layer}.mlp.down_proj`),
  ];
}

export function norm(
  input: RowBuffer,
  weight: string,
  out: RowBuffer,
  rows: "all" | "draws" = "all",
): Step {
  return { op: "norm", input, weight, out, rows };
}

export function project(
  input: RowBuffer,
  outputs: readonly (readonly [matrix: string, out: RowBuffer])[],
  rows: "all" | "draws" = "all",
): Step {
  const projections = outputs.map(([matrix, out]) => ({ matrix, out, accumulate: false }));
  return { op: "project", input, projections, rows };
}

export function addProjection(input: RowBuffer, matrix: string): Step {
  return {
    op: "project",
    input,
    projections: [{ matrix, out: "hidden", accumulate: true }],
    rows: "all",
  };
}
