/** What llama.cpp calls each part of a layer (gguf-py, `tensor_mapping.py`). */
const layerParts: ReadonlyMap<string, string> = new Map([
  ["input_layernorm", "attn_norm.weight"],
  ["post_attention_layernorm", "post_attention_norm.weight"],
  ["self_attn.q_proj", "attn_q.weight"],
  ["self_attn.k_proj", "attn_k.weight"],
  ["self_attn.v_proj", "attn_v.weight"],
  ["self_attn.o_proj", "attn_output.weight"],
  ["self_attn.q_norm", "attn_q_norm.weight"],
  ["self_attn.k_norm", "attn_k_norm.weight"],
  ["linear_attn.in_proj_qkv", "attn_qkv.weight"],
  ["linear_attn.in_proj_z", "attn_gate.weight"],
  ["linear_attn.in_proj_a", "ssm_alpha.weight"],
  ["linear_attn.in_proj_b", "ssm_beta.weight"],
  ["linear_attn.conv1d", "ssm_conv1d.weight"],
  ["linear_attn.A_log", "ssm_a"],
  ["linear_attn.dt_bias", "ssm_dt.bias"],
  ["linear_attn.norm", "ssm_norm.weight"],
  ["linear_attn.out_proj", "ssm_out.weight"],
  ["mlp.gate_proj", "ffn_gate.weight"],
  ["mlp.up_proj", "ffn_up.weight"],
  ["mlp.down_proj", "ffn_down.weight"],
]);

const modelParts: ReadonlyMap<string, string> = new Map([
  ["embed_tokens", "token_embd.weight"],
  ["norm", "output_norm.weight"],
  ["lm_head", "output.weight"],
]);

/** A tensor's name in a GGUF file, of a module's path. */
export function ggufName(path: string): string {
  const [, layer, part = ""] = /^layers\.(\d+)\.(.*)$/.exec(path) ?? [];
  const name = layer === undefined ? modelParts.get(path) : layerParts.get(part);
  return layer === undefined ? `${name}` : `blk.${layer}.${name}`;
}
