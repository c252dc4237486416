import { describe, expect, it } from "vitest";
import { CheckpointError } from "../errors.ts";
import { readConfig } from "./config.ts";
import { memoryFolder, tinyConfig } from "./files.cases.ts";

const read = (config: unknown, generation?: unknown) => {
  const files = new Map([["config.json", JSON.stringify(config)]]);
  if (generation !== undefined) files.set("generation_config.json", JSON.stringify(generation));
  return readConfig(memoryFolder(files));
};

describe("readConfig", () => {
  it("reads a flat config", async () => {
    const { shape, modelType, eosIds, quantization } = await read(tinyConfig());
    expect(modelType).toBe("qwen3_5_text");
    expect(eosIds).toEqual([95]);
    expect(quantization).toBeNull();
    expect(shape).toEqual({
      vocabSize: 96,
      hiddenSize: 64,
      intermediateSize: 128,
      layerTypes: ["linear", "full"],
      headCount: 4,
      kvHeadCount: 2,
      headDim: 32,
      rotaryDim: 8,
      ropeTheta: 10000,
      linearKeyHeads: 2,
      linearValueHeads: 4,
      linearKeyDim: 16,
      linearValueDim: 16,
      convTaps: 4,
      normEps: 1e-6,
      tiedHead: false,
      contextMax: 512,
    });
  });

  it("reads a wrapper: text_config first, then the top level", async () => {
    const { tie_word_embeddings: _, ...text } = tinyConfig();
    const wrapper = {
      model_type: "qwen3_5",
      text_config: text,
      vision_config: { hidden_size: 7 },
      hidden_size: 9,
      tie_word_embeddings: true,
      eos_token_id: [3, 4],
    };
    const config = await read(wrapper, { eos_token_id: [94, 95], temperature: 0.7, top_k: 20 });
    expect(config.shape).toMatchObject({ hiddenSize: 64, tiedHead: true });
    expect(config.eosIds).toEqual([3, 4, 94, 95]);
    expect(config.generation).toEqual({
      temperature: 0.7,
      topK: 20,
      topP: null,
      minP: null,
      repetitionPenalty: null,
    });
  });

  it("spaces full layers by full_attention_interval, 4 unless given", async () => {
    const config = { ...tinyConfig(), num_hidden_layers: 5, layer_types: undefined };
    const types = async (extra: object) => (await read({ ...config, ...extra })).shape.layerTypes;
    expect(await types({})).toEqual(["linear", "linear", "linear", "full", "linear"]);
    expect((await types({ full_attention_interval: 2 }))[1]).toBe("full");
  });

  it("finds rotary fields where older files keep them", async () => {
    const { rope_parameters: _, ...config } = tinyConfig();
    const old = { ...config, rope_theta: 5000, partial_rotary_factor: 0.5 };
    const { shape } = await read({ ...old, rope_scaling: { type: "mrope" } });
    expect(shape).toMatchObject({ ropeTheta: 5000, rotaryDim: 16 });
  });

  it("reads MLX quantisation with overrides by module", async () => {
    const quantization = {
      group_size: 64,
      bits: 4,
      mode: "affine",
      "language_model.model.layers.0.mlp.up_proj": { group_size: 32, bits: 8 },
      "model.language_model.layers.1.mlp.up_proj": { bits: 6 },
      "language_model.lm_head": false,
      "vision_tower.x": { bits: 3, group_size: 5 },
    };
    const config = await read({ ...tinyConfig(), quantization, quantization_config: quantization });
    expect(config.quantization).toMatchObject({ bits: 4, groupSize: 64 });
    expect([...(config.quantization?.overrides ?? [])]).toEqual([
      ["layers.0.mlp.up_proj", { bits: 8, groupSize: 32 }],
      ["layers.1.mlp.up_proj", { bits: 6, groupSize: 64 }],
    ]);
  });

  const rope = (type: string) => ({ rope_parameters: { rope_type: type, rope_theta: 1 } });
  it("reads the blocks of fp8, at the top or within text_config", async () => {
    const quantization_config = { quant_method: "fp8", weight_block_size: [128, 64] };
    const flat = await read({ ...tinyConfig(), quantization_config });
    expect(flat).toMatchObject({ fp8: { rows: 128, cols: 64 }, quantization: null });
    const text_config = { ...tinyConfig(), quantization_config };
    const nested = await read({ model_type: "qwen3_5", text_config });
    expect(nested.fp8).toEqual(flat.fp8);
    expect((await read(tinyConfig())).fp8).toBeNull();
  });

  it.each<[object, RegExp]>([
    [{ model_type: "llama" }, /model_type: only qwen3_5 .*found "llama"/],
    [{ model_type: undefined }, /config\.json: model_type is missing/],
    [{ hidden_size: undefined }, /config\.json: hidden_size is missing/],
    [{ hidden_size: "64" }, /hidden_size: .*found "64"/],
    [{ hidden_size: 1e12 }, /hidden_size: .*found 1000000000000/],
    [{ vocab_size: 1.5 }, /vocab_size: .*found 1.5/],
    [{ num_attention_heads: 0 }, /num_attention_heads: .*found 0/],
    [{ num_key_value_heads: 3 }, /num_attention_heads: must be a multiple of .*\(3\), found 4/],
    [{ linear_num_key_heads: 3 }, /linear_num_value_heads: must be a multiple of .*\(3\)/],
    [{ linear_conv_kernel_dim: 1 }, /linear_conv_kernel_dim: .*found 1/],
    [{ num_hidden_layers: 1e9 }, /num_hidden_layers: .*found 1000000000/],
    [{ num_hidden_layers: 3 }, /layer_types: must have num_hidden_layers \(3\).*found 2/],
    [{ layer_types: ["linear_attention", "x"] }, /layer_types: /],
    [{ head_dim: 20, partial_rotary_factor: 0.25 }, /partial_rotary_factor: head_dim 20/],
    [{ rms_norm_eps: -1 }, /rms_norm_eps: .*found -1/],
    [{ hidden_act: "gelu" }, /hidden_act: must be silu, found "gelu"/],
    [{ attention_bias: true }, /attention_bias: must be false/],
    [{ tie_word_embeddings: "yes" }, /tie_word_embeddings: .*found "yes"/],
    [{ eos_token_id: [-1] }, /eos_token_id: .*found \[-1\]/],
    [{ eos_token_id: [95, 96] }, /eos_token_id: must be below the vocab_size of 96, found 96/],
    [rope("yarn"), /rope_parameters\.rope_type: only default .*found "yarn"/],
    [{ rope_parameters: { rope_type: "default" } }, /rope_theta is missing/],
    [{ rope_parameters: [] }, /rope_parameters: must be an object, found \[\]/],
    [{ quantization_config: { quant_method: "fp8" } }, /weight_block_size is missing/],
    [
      { quantization_config: { quant_method: "fp8", weight_block_size: [128] } },
      /quantization_config\.weight_block_size: .*found \[128\]/,
    ],
    [
      { quantization_config: { quant_method: "fp8", fmt: "e5m2", weight_block_size: [128, 128] } },
      /quantization_config\.fmt: only e4m3 is read, found "e5m2"/,
    ],
    [{ quantization_config: { quant_method: "gptq", bits: 4 } }, /quant_method: .*found "gptq"/],
    [{ quantization_config: { quant_method: "awq" } }, /quant_method: .*found "awq"/],
    [{ quantization: { mode: "mxfp4", bits: 4, group_size: 32 } }, /mode: .*found "mxfp4"/],
    [{ quantization: { mode: "nvfp4", bits: 4, group_size: 16 } }, /mode: .*found "nvfp4"/],
    [{ quantization: { bits: 4 } }, /quantization\.group_size is missing/],
    [{ text_config: { model_type: "qwen2" } }, /text_config\.model_type: .*found "qwen2"/],
  ])("refuses %j", async (change, message) => {
    const error = await read({ ...tinyConfig(), ...change }).catch((caught) => caught);
    expect(error).toBeInstanceOf(CheckpointError);
    expect(error.message).toMatch(message);
    expect(error.message).toContain("config.json");
  });

  it.each<[object, string]>([
    [{ temperature: -0.1 }, "temperature: must be at least 0, found -0.1"],
    [{ temperature: "1" }, 'temperature: must be at least 0, found "1"'],
    [{ top_p: 0 }, "top_p: must be over 0 and at most 1, found 0"],
    [{ top_p: 7 }, "top_p: must be over 0 and at most 1, found 7"],
    [{ top_k: 1.5 }, "top_k: must be a whole number, found 1.5"],
    [{ min_p: 1.1 }, "min_p: must be between 0 and 1, found 1.1"],
    [{ repetition_penalty: 0 }, "repetition_penalty: must be over 0, found 0"],
    [{ do_sample: "no" }, "do_sample: "],
    [{ eos_token_id: 4096 }, "eos_token_id: must be below the vocab_size of 96, found 4096"],
    [{ do_sample: false, temperature: -1 }, "temperature: must be at least 0, found -1"],
  ])("refuses %j in generation_config.json, naming that file", async (generation, message) => {
    const error = await read(tinyConfig(), generation).catch((caught) => caught);
    expect(error).toBeInstanceOf(CheckpointError);
    expect(error.message).toContain(`generation_config.json: ${message}`);
  });

  it("takes recommended sampling as requests may say it, and do_sample: false as greedy", async () => {
    const edges = { temperature: 0, top_p: 1, top_k: -1, min_p: 1, repetition_penalty: 0.5 };
    const { generation } = await read(tinyConfig(), { ...edges, do_sample: true });
    expect(generation).toEqual({
      temperature: 0,
      topP: 1,
      topK: -1,
      minP: 1,
      repetitionPenalty: 0.5,
    });
    const greedy = await read(tinyConfig(), { do_sample: false, temperature: 0.7, top_p: 0.9 });
    expect(greedy.generation).toMatchObject({ temperature: 0, topP: 0.9 });
  });

  it("refuses a missing or broken file", async () => {
    await expect(readConfig(memoryFolder(new Map()))).rejects.toThrow(/has no config\.json/);
    const broken = memoryFolder(new Map([["config.json", "{nope"]]));
    await expect(readConfig(broken)).rejects.toThrow(/config\.json: is not valid JSON/);
  });
});
