import { CheckpointError } from "../errors.ts";
import { type ByteSource, checkRange, type Folder, sourceText } from "./source.ts";

/** Files of a folder that stands in memory, by name. */
export type Files = Map<string, Uint8Array | string>;

export function memorySource(name: string, bytes: Uint8Array): ByteSource {
  const source: ByteSource = {
    name,
    size: bytes.length,
    async read(offset, length) {
      checkRange(source, offset, length);
      return bytes.slice(offset, offset + length);
    },
    close: async () => {},
  };
  return source;
}

export function memoryFolder(files: Files): Folder {
  const open = async (path: string) => {
    const content = files.get(path);
    if (content === undefined) throw new CheckpointError(`mem/${path}`, "does not exist");
    const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
    return memorySource(`mem/${path}`, bytes);
  };
  return {
    name: "mem",
    has: async (path) => files.has(path),
    open,
    text: async (path) => sourceText(await open(path)),
  };
}

export interface RawTensor {
  readonly name: string;
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly data: Uint8Array;
}

/** A safetensors file of the given tensors, in the given order. */
export function safetensorsFile(tensors: readonly RawTensor[]): Uint8Array {
  let end = 0;
  const entries = tensors.map(({ name, dtype, shape, data }) => {
    const start = end;
    end += data.length;
    return [name, { dtype, shape, data_offsets: [start, end] }] as const;
  });
  return rawFile(
    JSON.stringify(Object.fromEntries(entries)),
    tensors.map((tensor) => tensor.data),
  );
}

/** A file with any header text and then any bytes, however wrong. */
export function rawFile(header: string, data: readonly Uint8Array[] = []): Uint8Array {
  const json = new TextEncoder().encode(header);
  const length = new Uint8Array(8);
  new DataView(length.buffer).setBigUint64(0, BigInt(json.length), true);
  return new Uint8Array(Buffer.concat([length, json, ...data]));
}

/** The smallest config that opens: one linear and one full layer, in text-only form. */
export function tinyConfig(): Record<string, unknown> {
  return {
    model_type: "qwen3_5_text",
    vocab_size: 96,
    hidden_size: 64,
    intermediate_size: 128,
    num_hidden_layers: 2,
    layer_types: ["linear_attention", "full_attention"],
    num_attention_heads: 4,
    num_key_value_heads: 2,
    head_dim: 32,
    linear_num_key_heads: 2,
    linear_num_value_heads: 4,
    linear_key_head_dim: 16,
    linear_value_head_dim: 16,
    linear_conv_kernel_dim: 4,
    rms_norm_eps: 1e-6,
    rope_parameters: { rope_type: "default", rope_theta: 10000 },
    max_position_embeddings: 512,
    tie_word_embeddings: false,
    eos_token_id: 95,
  };
}

/** The smallest config of a DFlash2 drafter, for a model of `tinyConfig`. */
export function tinyDrafterConfig(): Record<string, unknown> {
  return {
    architectures: ["DFlash2DraftModel"],
    model_type: "qwen3",
    vocab_size: 96,
    hidden_size: 64,
    intermediate_size: 128,
    num_hidden_layers: 2,
    num_attention_heads: 4,
    num_key_value_heads: 2,
    head_dim: 32,
    rms_norm_eps: 1e-6,
    hidden_act: "silu",
    rope_theta: 10000,
    rope_scaling: null,
    layer_types: ["sliding_attention", "full_attention"],
    sliding_window: 24,
    use_sliding_window: true,
    is_causal: false,
    num_target_layers: 2,
    max_position_embeddings: 512,
    dflash_config: {
      mask_token_id: 95,
      target_layer_ids: [0, 1],
      block_size: 8,
      conv_kernel_size: 2,
      conv_group_size: 16,
      selector_rank: 32,
      selector_top_k: 4,
    },
  };
}
