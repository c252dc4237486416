import { describe, expect, it } from "vitest";
import { CheckpointError } from "../errors.ts";
import { readConfig } from "./config.ts";
import { readDrafterConfig } from "./drafter-config.ts";
import { isDrafterFolder } from "./drafter-kind.ts";
import { memoryFolder, tinyConfig, tinyDrafterConfig } from "./files.cases.ts";

const folderOf = (config: unknown) =>
  memoryFolder(new Map([["config.json", JSON.stringify(config)]]));
const read = (config: unknown) => readDrafterConfig(folderOf(config));
const second = tinyDrafterConfig();
const draft = second["dflash_config"] as Record<string, unknown>;
const withDraft = (changes: object) => ({ ...second, dflash_config: { ...draft, ...changes } });

/** A DFlash drafter, whose block size stands at the top. */
const first = {
  ...second,
  architectures: ["DFlashDraftModel"],
  block_size: 6,
  dflash_config: { mask_token_id: 90, target_layer_ids: [1] },
};

describe("readDrafterConfig", () => {
  it("reads a DFlash2 drafter", async () => {
    const { shape, targetLayers, quantization } = await read(second);
    expect(targetLayers).toBe(2);
    expect(quantization).toBeNull();
    expect(shape).toEqual({
      kind: "dflash2",
      vocabSize: 96,
      hiddenSize: 64,
      intermediateSize: 128,
      layers: [
        { window: 24, causal: false },
        { window: null, causal: false },
      ],
      headCount: 4,
      kvHeadCount: 2,
      headDim: 32,
      rope: { theta: 10000, yarn: null },
      normEps: 1e-6,
      featureLayers: [0, 1],
      blockRows: 8,
      maskId: 95,
      candidates: 4,
      convolution: { groupSize: 16 },
      selector: { rank: 32 },
    });
  });

  it("reads a DFlash drafter, which has no convolutions and no selector", async () => {
    const { shape } = await read(first);
    expect(shape).toMatchObject({ kind: "dflash", blockRows: 6, maskId: 90, featureLayers: [1] });
    expect(shape).toMatchObject({ candidates: 16, convolution: null, selector: null });
    const { block_size: _, ...unsaid } = first;
    expect((await read(unsaid)).shape.blockRows).toBe(16);
  });

  it("takes dflash_config before the top level", async () => {
    const { shape } = await read({ ...withDraft({ block_size: 5 }), block_size: 9 });
    expect(shape.blockRows).toBe(5);
  });

  it("tells causal layers by is_causal, then causal, then whether they slide", async () => {
    const causal = async (config: object) =>
      (await read(config)).shape.layers.map((layer) => layer.causal);
    const { is_causal: _, ...unsaid } = second;
    expect(await causal(unsaid)).toEqual([true, false]);
    expect(await causal({ ...withDraft({ causal: true }), is_causal: undefined })).toEqual([
      true,
      true,
    ]);
    expect(await causal({ ...withDraft({ causal: false }), is_causal: undefined })).toEqual([
      false,
      false,
    ]);
    expect(await causal({ ...withDraft({ causal: false }), is_causal: true })).toEqual([
      true,
      true,
    ]);
  });

  it("lets no layer slide where layer_types are absent", async () => {
    const { layer_types: _, ...config } = second;
    const { layers } = (await read(config)).shape;
    expect(layers.map(({ window }) => window)).toEqual([null, null]);
  });

  // Those that z-lab trained for targets of 32 and 64 layers, then what Python's round makes of halves.
  it.each([
    [32, 5, [1, 8, 15, 22, 29]],
    [64, 5, [1, 16, 31, 46, 61]],
    [9, 3, [1, 4, 6]],
    [13, 3, [1, 6, 10]],
    [36, 1, [18]],
    [37, 1, [18]],
  ])("spaces features of %i layers over %i evenly", async (target, layers, expected) => {
    const config = {
      ...withDraft({ target_layer_ids: undefined }),
      num_target_layers: target,
      num_hidden_layers: layers,
      layer_types: undefined,
    };
    expect((await read(config)).shape.featureLayers).toEqual(expected);
  });

  it("reads yarn, with transformers' defaults", async () => {
    const yarn = { rope_type: "yarn", factor: 4, original_max_position_embeddings: 128 };
    const rope = async (config: object) => (await read({ ...second, ...config })).shape.rope;
    expect(await rope({ rope_scaling: yarn })).toEqual({
      theta: 10000,
      yarn: {
        factor: 4,
        originalContext: 128,
        betaFast: 32,
        betaSlow: 1,
        attentionFactor: 0.1 * Math.log(4) + 1,
      },
    });
    const all = { ...yarn, rope_theta: 500, beta_fast: 20, beta_slow: 2, attention_factor: 1.5 };
    expect(await rope({ rope_theta: undefined, rope_parameters: all })).toMatchObject({
      theta: 500,
      yarn: { betaFast: 20, betaSlow: 2, attentionFactor: 1.5 },
    });
    const old = { type: "yarn", factor: 0.5 };
    expect(await rope({ rope_scaling: old })).toMatchObject({
      yarn: { originalContext: 512, attentionFactor: 1 },
    });
  });

  it("reads MLX quantisation with overrides by module", async () => {
    const quantization = { bits: 4, group_size: 64, "layers.0.mlp.up_proj": { bits: 8 } };
    const config = await read({ ...second, quantization });
    expect(config.quantization).toMatchObject({ bits: 4, groupSize: 64 });
    expect(config.quantization?.overrides.get("layers.0.mlp.up_proj")).toEqual({
      bits: 8,
      groupSize: 64,
    });
  });

  it.each<[RegExp, object]>([
    [/dflash_config\.output_multiplier: .*found 0.5/, withDraft({ output_multiplier: 0.5 })],
    [/final_logit_softcapping: is not supported/, { ...second, final_logit_softcapping: 30 }],
    [/input_embedding_scale: is not supported, found 2/, withDraft({ input_embedding_scale: 2 })],
    [/dflash_config\.conv_kernel_size: must be 2, found 3/, withDraft({ conv_kernel_size: 3 })],
    [/conv_group_size: must divide the hidden_size of 64/, withDraft({ conv_group_size: 24 })],
    [/selector_top_k: must be below 97, found 97/, withDraft({ selector_top_k: 97 })],
    [/dflash_config\.selector_rank is missing/, withDraft({ selector_rank: null })],
    [/dflash_config\.block_size: must be 2 to 16, found 17/, withDraft({ block_size: 17 })],
    [/config\.json: block_size: must be 2 to 16, found 1/, { ...first, block_size: 1 }],
    [/mask_token_id: must be below 96, found 96/, withDraft({ mask_token_id: 96 })],
    [/mask_token_id is missing/, withDraft({ mask_token_id: undefined })],
    [/target_layer_ids: /, withDraft({ target_layer_ids: [] })],
    [/target_layer_ids: .*found \[-1\]/, withDraft({ target_layer_ids: [-1] })],
    [/num_target_layers: must be at least 4/, withDraft({ target_layer_ids: null })],
    [
      /num_target_layers is missing/,
      { ...withDraft({ target_layer_ids: null }), num_target_layers: null },
    ],
    [/attention_bias: must be false/, { ...second, attention_bias: true }],
    [/hidden_act: must be silu, found "gelu"/, { ...second, hidden_act: "gelu" }],
    [/head_dim: must be even, found 31/, { ...second, head_dim: 31 }],
    [/num_attention_heads: must be a multiple of/, { ...second, num_key_value_heads: 3 }],
    [/layer_types: must have .*\(2\).*found 1/, { ...second, layer_types: ["full_attention"] }],
    [/layer_types: /, { ...second, layer_types: ["x", "full_attention"] }],
    [/sliding_window is missing/, { ...second, sliding_window: null }],
    [/use_sliding_window: must be true/, { ...second, use_sliding_window: false }],
    [/rope_theta is missing/, { ...second, rope_theta: undefined }],
    [/partial_rotary_factor: must be 1, found 0.25/, { ...second, partial_rotary_factor: 0.25 }],
    [
      /rope_scaling\.type: must be default or yarn/,
      { ...second, rope_scaling: { type: "linear" } },
    ],
    [/rope_scaling\.factor is missing/, { ...second, rope_scaling: { rope_type: "yarn" } }],
    [
      /rope_scaling\.mscale: is not read with yarn, found 1/,
      { ...second, rope_scaling: { rope_type: "yarn", factor: 2, mscale: 1 } },
    ],
    [
      /rope_scaling\.truncate: must be true/,
      { ...second, rope_scaling: { rope_type: "yarn", factor: 2, truncate: false } },
    ],
    [/mode: only affine/, { ...second, quantization: { bits: 4, group_size: 64, mode: "mxfp4" } }],
  ])("refuses: %s", async (message, config) => {
    const error = await read(config).catch((caught) => caught);
    expect(error).toBeInstanceOf(CheckpointError);
    expect(error.message).toMatch(message);
  });

  it("tells a drafter from a model, and says which it was given", async () => {
    expect(await isDrafterFolder(folderOf(first))).toBe(true);
    expect(await isDrafterFolder(folderOf(second))).toBe(true);
    expect(await isDrafterFolder(folderOf(tinyConfig()))).toBe(false);
    const model = read(tinyConfig());
    await expect(model).rejects.toThrow("mem: is a model of model_type qwen3_5_text, not a DFlash");
    for (const [config, name] of [[first, "DFlash"] as const, [second, "DFlash2"] as const]) {
      const message = `mem: is a ${name} drafter, which is no model by itself.`;
      await expect(readConfig(folderOf(config))).rejects.toThrow(message);
    }
  });
});
