import { windowRowsMax } from "../limits.ts";
import type { ModelShape } from "./shape.ts";

/**
 * The sizes of a DFlash or DFlash2 block drafter (z-lab; `docs/drafters.md`): layers that attend to the
 * target's features over the whole stream, and predict a block of tokens at once. It reads the
 * target's embedding and head.
 */
export interface DrafterShape {
  readonly kind: "dflash" | "dflash2";
  readonly vocabSize: number;
  /** The target's. */
  readonly hiddenSize: number;
  readonly intermediateSize: number;
  readonly layers: readonly DrafterLayer[];
  readonly headCount: number;
  readonly kvHeadCount: number;
  /** All of a head's dims rotate. */
  readonly headDim: number;
  readonly rope: DrafterRope;
  readonly normEps: number;
  /** Target layers, 0-based, whose output (the residual stream behind them) is a feature, in order. */
  readonly featureLayers: readonly number[];
  /** Rows of a block: the anchor and the tokens to predict. 2 to `windowRowsMax`. */
  readonly blockRows: number;
  /** The token that stands for one to predict. */
  readonly maskId: number;
  /** Candidates of each predicted position. */
  readonly candidates: number;
  /** DFlash2: grouped dynamic convolutions around each sublayer. */
  readonly convolution: { readonly groupSize: number } | null;
  /** DFlash2: codebooks that score a candidate by its predecessor. */
  readonly selector: { readonly rank: number } | null;
}

export interface DrafterLayer {
  /** How far back a block's row sees the context: rows t with position − t < window. Null: all of it. */
  readonly window: number | null;
  /** Whether a row of the block sees only the rows before it and itself, or the whole block. */
  readonly causal: boolean;
}

export interface DrafterRope {
  readonly theta: number;
  readonly yarn: {
    readonly factor: number;
    readonly originalContext: number;
    readonly betaFast: number;
    readonly betaSlow: number;
    /** What the rotated vectors are multiplied by. */
    readonly attentionFactor: number;
  } | null;
}

/** Widths that follow from the shape. */
export interface DrafterSizes {
  readonly attentionDim: number;
  readonly kvDim: number;
  /** Floats of one row of features. */
  readonly featureDim: number;
  /** Floats of one row's dynamic kernels: [side, tap, group]. 0 without convolutions. */
  readonly kernelDim: number;
}

export function drafterSizes(shape: DrafterShape): DrafterSizes {
  const { convolution, hiddenSize } = shape;
  return {
    attentionDim: shape.headCount * shape.headDim,
    kvDim: shape.kvHeadCount * shape.headDim,
    featureDim: shape.featureLayers.length * hiddenSize,
    kernelDim: convolution ? (4 * hiddenSize) / convolution.groupSize : 0,
  };
}

/**
 * Rows of features that a slot holds, at place mod this: what a pass and a window bring, so that they
 * may wait until the drafter needs them.
 */
export const featureRowsOf = (rowsMax: number): number => rowsMax + windowRowsMax;

/** A small drafter of a model, for gates and tests: sliding and full, causal and not. */
export function tinyDrafterShape(
  target: ModelShape,
  changes: Partial<DrafterShape> = {},
): DrafterShape {
  return {
    kind: "dflash2",
    vocabSize: target.vocabSize,
    hiddenSize: target.hiddenSize,
    intermediateSize: 160,
    layers: [
      { window: 24, causal: false },
      { window: null, causal: false },
      { window: 40, causal: true },
    ],
    headCount: 4,
    kvHeadCount: 2,
    headDim: 32,
    rope: { theta: 10_000, yarn: null },
    normEps: 1e-6,
    featureLayers: [0, 2],
    blockRows: 8,
    maskId: target.vocabSize - 1,
    candidates: 16,
    convolution: { groupSize: 16 },
    selector: { rank: 32 },
    ...changes,
  };
}
