import type { ModelShape } from "../../model/shape.ts";
import { derivedSizes } from "../../model/shape.ts";
import { sigmoid, silu, softplus } from "./tensors.ts";

/** Weights of one Gated DeltaNet layer's convolution and gates. */
export interface DeltaWeights {
  /** [channels, taps]. */
  readonly conv: Float32Array;
  readonly aLog: Float32Array;
  readonly dtBias: Float32Array;
}

/**
 * One row of the causal depthwise convolution with SiLU, then head norms of q and k.
 * `window` holds the last `taps` raw rows, oldest first.
 */
export function convolve(
  shape: ModelShape,
  weights: DeltaWeights,
  window: readonly Float32Array[],
  out: Float32Array,
): void {
  const taps = shape.convTaps;
  for (let channel = 0; channel < out.length; channel++) {
    let sum = 0;
    for (let j = 0; j < taps; j++) sum += weights.conv[channel * taps + j]! * window[j]![channel]!;
    out[channel] = silu(sum);
  }
  const width = shape.linearKeyDim;
  for (let head = 0; head < 2 * shape.linearKeyHeads; head++) {
    const vector = out.subarray(head * width, (head + 1) * width);
    let squares = 0;
    for (const value of vector) squares += value * value;
    const isQuery = head < shape.linearKeyHeads;
    const scale = 1 / Math.sqrt(squares + 1e-6) / (isQuery ? Math.sqrt(width) : 1);
    for (let i = 0; i < width; i++) vector[i] = vector[i]! * scale;
  }
}

/** gates [value heads, 2] = (g, β) of one row. */
export function gatesOf(
  weights: DeltaWeights,
  b: Float32Array,
  a: Float32Array,
  gates: Float32Array,
): void {
  for (let head = 0; head < b.length; head++) {
    const rate = softplus(a[head]! + weights.dtBias[head]!);
    gates[2 * head] = Math.exp(-Math.exp(weights.aLog[head]!) * rate);
    gates[2 * head + 1] = sigmoid(b[head]!);
  }
}

/**
 * One row of the delta rule for every value head: S ← g·S; δ = β·(v − Sᵀk); S ← S + k·δᵀ; o = Sᵀq.
 * `state` is [value head, key dim, value dim], advanced in place.
 */
export function advance(
  shape: ModelShape,
  conv: Float32Array,
  gates: Float32Array,
  state: Float32Array,
  out: Float32Array,
): void {
  const { linearKeyDim: dk, linearValueDim: dv, linearKeyHeads, linearValueHeads } = shape;
  const { keyDim } = derivedSizes(shape);
  // First the prediction Sᵀk, then δ.
  const delta = new Float64Array(dv);
  const read = new Float64Array(dv);
  for (let head = 0; head < linearValueHeads; head++) {
    const keyHead = Math.floor(head / (linearValueHeads / linearKeyHeads));
    const q = conv.subarray(keyHead * dk, (keyHead + 1) * dk);
    const k = conv.subarray(keyDim + keyHead * dk, keyDim + (keyHead + 1) * dk);
    const v = conv.subarray(2 * keyDim + head * dv, 2 * keyDim + (head + 1) * dv);
    const s = state.subarray(head * dk * dv, (head + 1) * dk * dv);
    const g = gates[2 * head]!;
    const beta = gates[2 * head + 1]!;
    delta.fill(0);
    for (let i = 0; i < dk; i++) {
      for (let j = 0; j < dv; j++) {
        const decayed = Math.fround(s[i * dv + j]! * g);
        s[i * dv + j] = decayed;
        delta[j] = delta[j]! + decayed * k[i]!;
      }
    }
    for (let j = 0; j < dv; j++) delta[j] = beta * (v[j]! - delta[j]!);
    read.fill(0);
    for (let i = 0; i < dk; i++) {
      for (let j = 0; j < dv; j++) {
        const next = Math.fround(s[i * dv + j]! + k[i]! * delta[j]!);
        s[i * dv + j] = next;
        read[j] = read[j]! + next * q[i]!;
      }
    }
    out.set(read, head * dv);
  }
}
