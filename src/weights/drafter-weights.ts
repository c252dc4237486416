import type { DrafterShape } from "../model/drafter-shape.ts";
import type { Matrix } from "./weights.ts";

/**
 * A drafter's tensors by module path as the checkpoint has them, without `.weight`: `fc`, `hidden_norm`,
 * `norm`, `layers.0.self_attn.q_proj`, `candidate_selector.hidden_projection`, …
 * Vectors come as f32, as stored: norms are plain ones; `layers.i.attention_conv.base_kernel` is
 * [side, tap, hiddenSize].
 */
export interface DrafterWeights {
  readonly shape: DrafterShape;
  matrix(path: string): Matrix;
  vector(path: string): Promise<Float32Array>;
  readonly fingerprint: string;
  readonly storedBytes: number;
}
