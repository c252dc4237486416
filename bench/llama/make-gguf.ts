/**
 * Writes a GGUF file of random weights in the shape of Qwen3.5-0.8B, matrices in Q4_0 (4.5 bits a weight):
 * `node bench/llama/make-gguf.ts FILE`. Only its speed means anything.
 */
import { namedShape } from "../../src/model/released-shapes.ts";
import { derivedSizes, type ModelShape } from "../../src/model/shape.ts";
import { type GgufTensor, type GgufValue, writeGguf } from "./gguf.ts";

/** The file's metadata; names and meanings as in llama.cpp's `qwen35`. */
function metadataOf(shape: ModelShape): Map<string, GgufValue> {
  const { vocabSize, linearValueHeads, linearKeyHeads } = shape;
  const entries: Record<string, GgufValue> = {
    "general.architecture": { string: "qwen35" },
    "qwen35.block_count": { u32: shape.layerTypes.length },
    "qwen35.context_length": { u32: shape.contextMax },
    "qwen35.embedding_length": { u32: shape.hiddenSize },
    "qwen35.feed_forward_length": { u32: shape.intermediateSize },
    "qwen35.attention.head_count": { u32: shape.headCount },
    "qwen35.attention.head_count_kv": { u32: shape.kvHeadCount },
    "qwen35.attention.key_length": { u32: shape.headDim },
    "qwen35.attention.value_length": { u32: shape.headDim },
    "qwen35.attention.layer_norm_rms_epsilon": { f32: shape.normEps },
    "qwen35.rope.dimension_count": { u32: shape.rotaryDim },
    "qwen35.rope.freq_base": { f32: shape.ropeTheta },
    "qwen35.rope.dimension_sections": { i32s: [11, 11, 10, 0] },
    "qwen35.ssm.conv_kernel": { u32: shape.convTaps },
    "qwen35.ssm.inner_size": { u32: derivedSizes(shape).valueDim },
    "qwen35.ssm.state_size": { u32: shape.linearKeyDim },
    "qwen35.ssm.time_step_rank": { u32: linearValueHeads },
    "qwen35.ssm.group_count": { u32: linearKeyHeads },
    "qwen35.full_attention_interval": { u32: 4 },
    "tokenizer.ggml.model": { string: "gpt2" },
    "tokenizer.ggml.pre": { string: "qwen2" },
    "tokenizer.ggml.tokens": { strings: Array.from({ length: vocabSize }, (_, id) => `t${id}`) },
    "tokenizer.ggml.token_type": { i32s: new Array<number>(vocabSize).fill(1) },
    "tokenizer.ggml.merges": { strings: ["t 0"] },
    "tokenizer.ggml.eos_token_id": { u32: vocabSize - 1 },
  };
  return new Map(Object.entries(entries));
}

function tensorsOf(shape: ModelShape): GgufTensor[] {
  const { hiddenSize, intermediateSize, linearValueHeads, headDim } = shape;
  const sizes = derivedSizes(shape);
  const matrix = (name: string, rows: number, cols: number): GgufTensor => ({
    name: `${name}.weight`,
    dims: [cols, rows],
    type: "q4_0",
  });
  const floats = (name: string, ...dims: number[]): GgufTensor => ({ name, dims, type: "f32" });
  const layers = shape.layerTypes.flatMap((type, index) => {
    const at = `blk.${index}`;
    const mixer =
      type === "full"
        ? [
            matrix(`${at}.attn_q`, sizes.queryGateDim, hiddenSize),
            matrix(`${at}.attn_k`, sizes.kvDim, hiddenSize),
            matrix(`${at}.attn_v`, sizes.kvDim, hiddenSize),
            matrix(`${at}.attn_output`, hiddenSize, sizes.attentionDim),
            floats(`${at}.attn_q_norm.weight`, headDim),
            floats(`${at}.attn_k_norm.weight`, headDim),
          ]
        : [
            matrix(`${at}.attn_qkv`, sizes.convDim, hiddenSize),
            matrix(`${at}.attn_gate`, sizes.valueDim, hiddenSize),
            matrix(`${at}.ssm_beta`, linearValueHeads, hiddenSize),
            matrix(`${at}.ssm_alpha`, linearValueHeads, hiddenSize),
            matrix(`${at}.ssm_out`, hiddenSize, sizes.valueDim),
            floats(`${at}.ssm_conv1d.weight`, shape.convTaps, sizes.convDim),
            floats(`${at}.ssm_dt.bias`, linearValueHeads),
            floats(`${at}.ssm_a`, linearValueHeads),
            floats(`${at}.ssm_norm.weight`, shape.linearValueDim),
          ];
    return [
      floats(`${at}.attn_norm.weight`, hiddenSize),
      floats(`${at}.post_attention_norm.weight`, hiddenSize),
      ...mixer,
      matrix(`${at}.ffn_gate`, intermediateSize, hiddenSize),
      matrix(`${at}.ffn_up`, intermediateSize, hiddenSize),
      matrix(`${at}.ffn_down`, hiddenSize, intermediateSize),
    ];
  });
  return [
    matrix("token_embd", shape.vocabSize, hiddenSize),
    floats("output_norm.weight", hiddenSize),
    ...layers,
  ];
}

/** Random codes of scale 1/128, as f16; of vectors: norms near one, slow decays, small taps. */
function fill({ name, type }: GgufTensor, bytes: Buffer): void {
  if (type === "q4_0") {
    const words = new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.length >> 2);
    let state = 0x9e3779b9;
    for (let at = 0; at < words.length; at++) {
      state ^= state << 13;
      state ^= state >>> 17;
      state ^= state << 5;
      words[at] = state;
    }
    for (let at = 0; at < bytes.length; at += 18) bytes.writeUInt16LE(0x2000, at);
    return;
  }
  const value = name.endsWith("ssm_a") ? -0.5 : name.includes("conv1d") ? 0.25 : 1;
  new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length >> 2).fill(value);
}

const file = process.argv[2];
if (file === undefined) throw new Error("which file?");
const shape = namedShape("0.8b")!;
writeGguf(file, metadataOf(shape), tensorsOf(shape), fill);
