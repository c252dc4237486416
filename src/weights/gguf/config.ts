import type { GgufMetadata } from "./metadata.ts";

const architecture = "qwen35";
const fullAttentionIntervalDefault = 4;
/** Control tokens that end a reply, whatever the file calls its end. */
const endTokens: ReadonlySet<string> = new Set(["<|im_end|>", "<|endoftext|>"]);

/**
 * The config.json of the model that a file holds, in its text-only form.
 *
 * @param vocabSize rows of the embedding
 * @throws CheckpointError for another architecture, and for a key that is missing or wrong
 */
export function configOf(
  metadata: GgufMetadata,
  vocabSize: number,
  tied: boolean,
): ReadonlyMap<string, unknown> {
  const name = metadata.string("general.architecture");
  if (name !== architecture) {
    metadata.fail("general.architecture", `only ${architecture} is read`, name);
  }
  const of = (key: string) => metadata.number(`${architecture}.${key}`);
  // Draft heads are blocks too, behind the model's.
  const draftLayers = metadata.optionalNumber(`${architecture}.nextn_predict_layers`) ?? 0;
  const interval = metadata.optionalNumber(`${architecture}.full_attention_interval`);
  const headDim = of("attention.key_length");
  return new Map<string, unknown>([
    ["architectures", ["Qwen3_5ForCausalLM"]],
    ["model_type", "qwen3_5_text"],
    ["vocab_size", vocabSize],
    ["hidden_size", of("embedding_length")],
    ["intermediate_size", of("feed_forward_length")],
    ["num_hidden_layers", of("block_count") - draftLayers],
    ["full_attention_interval", interval ?? fullAttentionIntervalDefault],
    ["num_attention_heads", of("attention.head_count")],
    ["num_key_value_heads", metadata.numberOfLayers(`${architecture}.attention.head_count_kv`)],
    ["head_dim", headDim],
    ["linear_num_key_heads", of("ssm.group_count")],
    ["linear_num_value_heads", of("ssm.time_step_rank")],
    ["linear_key_head_dim", of("ssm.state_size")],
    ["linear_value_head_dim", of("ssm.inner_size") / of("ssm.time_step_rank")],
    ["linear_conv_kernel_dim", of("ssm.conv_kernel")],
    ["hidden_act", "silu"],
    ["rms_norm_eps", of("attention.layer_norm_rms_epsilon")],
    [
      "rope_parameters",
      {
        rope_type: "default",
        rope_theta: of("rope.freq_base"),
        partial_rotary_factor: of("rope.dimension_count") / headDim,
      },
    ],
    ["max_position_embeddings", of("context_length")],
    ["tie_word_embeddings", tied],
    ["eos_token_id", eosIds(metadata)],
    ["dtype", "bfloat16"],
  ]);
}

function eosIds(metadata: GgufMetadata): readonly number[] {
  const ids = ["eos", "eot"].flatMap(
    (end) => metadata.optionalNumber(`tokenizer.ggml.${end}_token_id`) ?? [],
  );
  const tokens = metadata.strings("tokenizer.ggml.tokens");
  for (const [id, token] of tokens.entries()) if (endTokens.has(token)) ids.push(id);
  return [...new Set(ids)].sort((a, b) => a - b);
}
