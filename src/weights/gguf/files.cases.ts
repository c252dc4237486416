import type { RawTensor } from "../../checkpoint/files.cases.ts";
import { bytesOf, widen } from "../floats.ts";

/** A metadata value with the type that the file gives it. */
export type MetaValue =
  | { readonly u32: number }
  | { readonly u64: bigint }
  | { readonly f32: number }
  | { readonly text: string }
  | { readonly texts: readonly string[] }
  | { readonly i32s: readonly number[] };

export type Metadata = ReadonlyMap<string, MetaValue>;

/** Rows first in `shape`, as everywhere but in the file. */
export interface GgufRaw {
  readonly name: string;
  readonly type: number;
  readonly shape: readonly number[];
  readonly data: Uint8Array;
}

/** A GGUF file of version 3 (ggml, `docs/gguf.md`). */
export function ggufFile(metadata: Metadata, tensors: readonly GgufRaw[]): Uint8Array {
  const alignment = 32;
  const head = [bytes("GGUF"), u32(3), u64(tensors.length), u64(metadata.size)];
  for (const [key, value] of metadata) head.push(text(key), metaBytes(value));
  let end = 0;
  for (const { name, type, shape, data } of tensors) {
    head.push(text(name), u32(shape.length), ...shape.toReversed().map(u64), u32(type), u64(end));
    end += Math.ceil(data.length / alignment) * alignment;
  }
  const padded = (part: Uint8Array) => Buffer.concat([part, new Uint8Array(-part.length & 31)]);
  return new Uint8Array(
    Buffer.concat([padded(Buffer.concat(head)), ...tensors.map(({ data }) => padded(data))]),
  );
}

const bytes = (content: string): Uint8Array => new TextEncoder().encode(content);
const u32 = (value: number): Uint8Array => new Uint8Array(Uint32Array.of(value).buffer);
const u64 = (value: number | bigint): Uint8Array =>
  new Uint8Array(BigUint64Array.of(BigInt(value)).buffer);
const text = (content: string): Uint8Array =>
  Buffer.concat([u64(bytes(content).length), bytes(content)]);

function metaBytes(value: MetaValue): Uint8Array {
  if ("u32" in value) return Buffer.concat([u32(4), u32(value.u32)]);
  if ("u64" in value) return Buffer.concat([u32(10), u64(value.u64)]);
  if ("f32" in value) return Buffer.concat([u32(6), bytesOf(Float32Array.of(value.f32))]);
  if ("text" in value) return Buffer.concat([u32(8), text(value.text)]);
  const list = (type: number, parts: readonly Uint8Array[]) =>
    Buffer.concat([u32(9), u32(type), u64(parts.length), ...parts]);
  if ("texts" in value) return list(8, value.texts.map(text));
  return list(
    5,
    value.i32s.map((each) => u32(each)),
  );
}

/** The keys of a model of a Hugging Face config, with a vocabulary. */
export function metadataOf(
  config: Readonly<Record<string, unknown>>,
  tokens: { readonly texts: readonly string[]; readonly kinds: readonly number[] },
  merges: readonly string[] = [],
): Map<string, MetaValue> {
  const of = (name: string) => ({ u32: Number(config[name]) });
  const rope = new Map(Object.entries(config["rope_parameters"] ?? {}));
  const headDim = Number(config["head_dim"]);
  const factor = Number(config["partial_rotary_factor"] ?? 0.25);
  const valueHeads = Number(config["linear_num_value_heads"]);
  const layers: unknown = config["layer_types"];
  const interval = Array.isArray(layers) ? layers.indexOf("full_attention") + 1 : 4;
  return new Map<string, MetaValue>([
    ["general.architecture", { text: "qwen35" }],
    ["qwen35.block_count", of("num_hidden_layers")],
    ["qwen35.context_length", of("max_position_embeddings")],
    ["qwen35.embedding_length", of("hidden_size")],
    ["qwen35.feed_forward_length", of("intermediate_size")],
    ["qwen35.attention.head_count", of("num_attention_heads")],
    ["qwen35.attention.head_count_kv", of("num_key_value_heads")],
    ["qwen35.attention.key_length", { u32: headDim }],
    ["qwen35.attention.layer_norm_rms_epsilon", { f32: Number(config["rms_norm_eps"]) }],
    ["qwen35.rope.dimension_count", { u32: headDim * factor }],
    ["qwen35.rope.freq_base", { f32: Number(rope.get("rope_theta")) }],
    ["qwen35.ssm.conv_kernel", of("linear_conv_kernel_dim")],
    ["qwen35.ssm.inner_size", { u32: valueHeads * Number(config["linear_value_head_dim"]) }],
    ["qwen35.ssm.state_size", of("linear_key_head_dim")],
    ["qwen35.ssm.time_step_rank", { u32: valueHeads }],
    ["qwen35.ssm.group_count", of("linear_num_key_heads")],
    ["qwen35.full_attention_interval", { u32: interval }],
    ["tokenizer.ggml.model", { text: "gpt2" }],
    ["tokenizer.ggml.pre", { text: "qwen35" }],
    ["tokenizer.ggml.tokens", { texts: tokens.texts }],
    ["tokenizer.ggml.token_type", { i32s: tokens.kinds }],
    ["tokenizer.ggml.merges", { texts: merges }],
  ]);
}

const names: readonly (readonly [RegExp, string])[] = [
  [/^model\.embed_tokens\.weight$/, "token_embd.weight"],
  [/^model\.norm\.weight$/, "output_norm.weight"],
  [/^lm_head\.weight$/, "output.weight"],
  [/input_layernorm/, "attn_norm.weight"],
  [/post_attention_layernorm/, "post_attention_norm.weight"],
  [/q_proj/, "attn_q.weight"],
  [/k_proj/, "attn_k.weight"],
  [/v_proj/, "attn_v.weight"],
  [/o_proj/, "attn_output.weight"],
  [/q_norm/, "attn_q_norm.weight"],
  [/k_norm/, "attn_k_norm.weight"],
  [/in_proj_qkv/, "attn_qkv.weight"],
  [/in_proj_z/, "attn_gate.weight"],
  [/in_proj_a/, "ssm_alpha.weight"],
  [/in_proj_b/, "ssm_beta.weight"],
  [/conv1d/, "ssm_conv1d.weight"],
  [/A_log/, "ssm_a"],
  [/dt_bias/, "ssm_dt.bias"],
  [/linear_attn\.norm/, "ssm_norm.weight"],
  [/out_proj/, "ssm_out.weight"],
  [/gate_proj/, "ffn_gate.weight"],
  [/up_proj/, "ffn_up.weight"],
  [/down_proj/, "ffn_down.weight"],
];

/**
 * Tensors of a Hugging Face checkpoint as llama.cpp's converter writes them: renamed, norms 1 + w,
 * −exp(A_log), value heads in tiled order; matrices as `encode` makes them, the rest as f32.
 */
export function ggufTensors(
  tensors: readonly RawTensor[],
  config: Readonly<Record<string, unknown>>,
  encode: (tensor: RawTensor) => Pick<GgufRaw, "type" | "data">,
): GgufRaw[] {
  const of = (name: string) => Number(config[name]);
  const [keyHeads, valueHeads] = [of("linear_num_key_heads"), of("linear_num_value_heads")];
  const keyDim = keyHeads * of("linear_key_head_dim");
  const valueDim = of("linear_value_head_dim");
  /** Moves head kg·r + j to place j·Hk + kg, `unit` bytes a head. */
  const tiled = (data: Uint8Array, unit: number): Uint8Array => {
    const ratio = valueHeads / keyHeads;
    const out = data.slice();
    for (let kg = 0; kg < keyHeads; kg++) {
      for (let j = 0; j < ratio; j++) {
        const from = (kg * ratio + j) * unit;
        out.set(data.subarray(from, from + unit), (j * keyHeads + kg) * unit);
      }
    }
    return out;
  };
  const reordered = (tensor: RawTensor): Uint8Array => {
    const { name, shape, data } = tensor;
    const rowBytes = data.length / (shape[0] ?? 1);
    if (/in_proj_qkv|conv1d/.test(name)) {
      const fixed = 2 * keyDim * rowBytes;
      return Buffer.concat([data.slice(0, fixed), tiled(data.slice(fixed), valueDim * rowBytes)]);
    }
    if (/in_proj_z/.test(name)) return tiled(data, valueDim * rowBytes);
    if (/in_proj_[ab]\.|A_log|dt_bias/.test(name)) return tiled(data, rowBytes);
    if (!/linear_attn\.out_proj/.test(name)) return data;
    const rows = Array.from({ length: shape[0] ?? 0 }, (_, row) =>
      tiled(data.slice(row * rowBytes, (row + 1) * rowBytes), rowBytes / valueHeads),
    );
    return Buffer.concat(rows);
  };
  return tensors.map((tensor) => {
    const own = names.find(([pattern]) => pattern.test(tensor.name))?.[1] ?? "";
    const layer = /layers\.(\d+)\./.exec(tensor.name)?.[1];
    const name = layer === undefined ? own : `blk.${layer}.${own}`;
    const data = Uint8Array.from(reordered(tensor));
    const { shape } = tensor;
    if (shape.length === 2) return { name, shape, ...encode({ ...tensor, data }) };
    const values = widen(data, tensor.dtype === "F32" ? "f32" : "bf16");
    const isCentred = /layernorm|q_norm|k_norm|model\.norm/.test(tensor.name);
    const stored = values.map((value) => {
      if (isCentred) return 1 + value;
      return /A_log/.test(tensor.name) ? -Math.exp(value) : value;
    });
    return { name, shape: shape.filter((size) => size !== 1), type: 0, data: bytesOf(stored) };
  });
}
