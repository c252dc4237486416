import { copyFile, truncate } from "node:fs/promises";
import { join } from "node:path";
import { configFile } from "../checkpoint/config-file.ts";
import { namedShape, shapeNames } from "../model/released-shapes.ts";
import type { ModelShape } from "../model/shape.ts";
import { type ConvertJob, matrixJob, vectorJob } from "./convert-jobs.ts";
import { planShards } from "./convert-plan.ts";
import { writeJson, writeShards } from "./convert-write.ts";
import { createOutputFolder } from "./output-node.ts";
import { randomWeights } from "./random.ts";
import { matrixRoles, type VectorRole, vectorRoles } from "./roles.ts";

/** Which checkpoint is to be made. */
export interface SizedCheckpoint {
  /** Of a released model: `0.8b`, `2b`, `4b`, `9b`, `27b`. */
  readonly size: string;
  /** `hf`: bf16 as the originals; `mlx`: 4 bits in groups of 64, as mlx-lm converts them. */
  readonly form: "hf" | "mlx";
  /** Fewer than the model has, for tests. */
  readonly layers?: number;
  /** Files of the right size that hold zeros and take no room on the disk. */
  readonly sparse: boolean;
}

const tokenizerFiles = ["tokenizer.json", "tokenizer_config.json", "chat_template.jinja"];
const nano = join(import.meta.dirname, "../../models/nano");
const visionFields = { image_token_id: 248056, video_token_id: 248057 };
const mlxQuantization = { group_size: 64, bits: 4, mode: "affine" };

/**
 * Writes a checkpoint with the names, shapes, types and config of a released model, and random values.
 * Its tokenizer is that of `models/nano`, whose ids are few; the vision tower is left out.
 */
export async function writeSized(path: string, made: SizedCheckpoint): Promise<void> {
  const { form, sparse } = made;
  const shape = sizedShape(made);
  const shards = planShards(sizedJobs(shape, form));
  const output = await createOutputFolder(path);
  const holes = shards.map((shard) => ({ ...shard, jobs: [] }));
  await writeShards(output, sparse ? holes : shards, () => {});
  await writeJson(output, configFile, sizedConfig(shape, form));
  await writeJson(output, "generation_config.json", { eos_token_id: [248046, 248044] });
  await output.commit();
  for (const file of tokenizerFiles) await copyFile(join(nano, file), join(path, file));
  if (!sparse) return;
  for (const shard of shards) await truncate(join(path, shard.path), shard.layout.fileBytes);
}

function sizedShape({ size, layers }: SizedCheckpoint): ModelShape {
  const shape = namedShape(size);
  if (shape === null) throw new Error(`no size ${size}; there are ${shapeNames.join(", ")}`);
  return { ...shape, layerTypes: shape.layerTypes.slice(0, layers) };
}

function sizedJobs(shape: ModelShape, form: SizedCheckpoint["form"]): ConvertJob[] {
  const weights = randomWeights(shape, { seed: 1, bits: form === "hf" ? "bf16" : 4 });
  const nameOf = (path: string) => {
    if (path === "lm_head") return form === "hf" ? "lm_head" : "language_model.lm_head";
    return `${form === "hf" ? "model.language_model" : "language_model.model"}.${path}`;
  };
  const draftHead = form === "hf" ? draftJobs(shape) : [];
  return [
    ...matrixRoles(shape).map(({ path }) =>
      matrixJob(nameOf(path), path, weights.matrix(path), null),
    ),
    ...vectorRoles(shape).map((role) => {
      const shifted = role.kind === "centred" && form === "hf";
      return vectorJob(
        nameOf(role.tensor),
        vectorType(role, form),
        vectorShape(role, form),
        async () => (await weights.vector(role.path)).map((value) => (shifted ? value - 1 : value)),
      );
    }),
    ...draftHead,
  ];
}

/** The originals keep the decay and the gated norm in f32, mlx-lm the decay alone. */
function vectorType({ path }: VectorRole, form: SizedCheckpoint["form"]): "bf16" | "f32" {
  const isF32 = path.endsWith(".A_log") || (form === "hf" && path.endsWith("linear_attn.norm"));
  return isF32 ? "f32" : "bf16";
}

function vectorShape({ kind, shape }: VectorRole, form: SizedCheckpoint["form"]): number[] {
  const [first = 0, taps = 0] = shape;
  if (kind !== "conv") return [...shape];
  return form === "hf" ? [first, 1, taps] : [first, taps, 1];
}

/** The originals' draft head, one full-attention layer, which a text model leaves alone. */
function draftJobs(shape: ModelShape): ConvertJob[] {
  const { hiddenSize } = shape;
  const layer: ModelShape = { ...shape, layerTypes: ["full"] };
  const tensors: (readonly [string, readonly number[]])[] = [
    ["mtp.fc.weight", [hiddenSize, 2 * hiddenSize]],
    ...["pre_fc_norm_embedding", "pre_fc_norm_hidden", "norm"].map(
      (name) => [`mtp.${name}.weight`, [hiddenSize]] as const,
    ),
    ...matrixRoles(layer)
      .filter(({ path }) => path.startsWith("layers."))
      .map(({ path, rows, cols }) => [`mtp.${path}.weight`, [rows, cols]] as const),
    ...vectorRoles(layer)
      .filter(({ path }) => path.startsWith("layers."))
      .map(({ tensor, shape: dims }) => [`mtp.${tensor}`, dims] as const),
  ];
  return tensors.map(([name, dims]) =>
    vectorJob(name, "bf16", dims, async () => new Float32Array(dims.reduce((a, b) => a * b, 1))),
  );
}

function sizedConfig(shape: ModelShape, form: SizedCheckpoint["form"]): unknown {
  const text = {
    attention_bias: false,
    attn_output_gate: true,
    bos_token_id: null,
    dtype: "bfloat16",
    eos_token_id: 248044,
    full_attention_interval: 4,
    head_dim: shape.headDim,
    hidden_act: "silu",
    hidden_size: shape.hiddenSize,
    intermediate_size: shape.intermediateSize,
    layer_types: shape.layerTypes.map((type) => `${type}_attention`),
    linear_conv_kernel_dim: shape.convTaps,
    linear_key_head_dim: shape.linearKeyDim,
    linear_num_key_heads: shape.linearKeyHeads,
    linear_num_value_heads: shape.linearValueHeads,
    linear_value_head_dim: shape.linearValueDim,
    mamba_ssm_dtype: "float32",
    max_position_embeddings: shape.contextMax,
    mlp_only_layers: [],
    model_type: "qwen3_5_text",
    mtp_num_hidden_layers: 1,
    mtp_use_dedicated_embeddings: false,
    num_attention_heads: shape.headCount,
    num_hidden_layers: shape.layerTypes.length,
    num_key_value_heads: shape.kvHeadCount,
    rms_norm_eps: shape.normEps,
    rope_parameters: {
      mrope_interleaved: true,
      mrope_section: [11, 11, 10],
      partial_rotary_factor: shape.rotaryDim / shape.headDim,
      rope_theta: shape.ropeTheta,
      rope_type: "default",
    },
    tie_word_embeddings: shape.tiedHead,
    vocab_size: shape.vocabSize,
  };
  const quantization = { quantization: mlxQuantization, quantization_config: mlxQuantization };
  return {
    architectures: ["Qwen3_5ForConditionalGeneration"],
    ...visionFields,
    model_type: "qwen3_5",
    text_config: text,
    tie_word_embeddings: shape.tiedHead,
    vision_config: { model_type: "qwen3_5" },
    vision_end_token_id: 248054,
    vision_start_token_id: 248053,
    ...(form === "mlx" && quantization),
  };
}
